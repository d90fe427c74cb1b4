package harness

import (
	"testing"
)

// OverReplicas runs test over three servers that share a Redis and a bucket, with each of these
// sandboxes.
func OverReplicas(t *testing.T, sandboxes []Part, test func(t *testing.T, servers []*Server)) {
	OverReplicasWith(t, sandboxes, nil, test)
}

// OverReplicasWith is OverReplicas with changed settings.
func OverReplicasWith(t *testing.T, sandboxes []Part, changes Settings, test func(t *testing.T, servers []*Server)) {
	t.Parallel()
	for _, e := range sandboxes {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			redis := RedisAlone(t)
			if err := redis.Start(); err != nil {
				t.Fatal(err)
			}
			group := Settings{"REDIS_URL": redis.URL(), "FILES_URL": Bucket(t)}
			var servers []*Server
			for range 3 {
				all := With(Common, e.Settings, Quick(t), JSONLog, changes)
				servers = append(servers, LaunchAlone(t, Setup{e.Name, With(all, group)}))
			}
			test(t, servers)
		})
	}
}

// Alices returns a client of each server that is the principal alice.
func Alices(servers []*Server) []Client {
	list := make([]Client, len(servers))
	for i, s := range servers {
		list[i] = s.Alice()
	}
	return list
}
