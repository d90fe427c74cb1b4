package main

import (
	"slices"
	"strings"
	"testing"
)

func TestStrays(t *testing.T) {
	environ := []string{
		"PATH=/bin", "FERMATA_MAXSANDBOXES=3", "FERMATA_MAX_SANDBOXES=3", "FERMATA_APIKEYS=ada:very-secret", "FERMATA_TEST_RACE=1",
		"FERMATA_FLUX_CAPACITOR_VOLTAGE=1", "FERMATA_PORT=8000", "FERMATA_PORT_8000_TCP=x", "FERMATA_JWT_KID=x", "FERMATA_PAUSETTL",
		"XFERMATA_ADDR=x", "FERMATA_=x",
	}
	var got []string
	for _, s := range straysIn(environ, settingsOfServe()) {
		got = append(got, s.warning())
	}
	want := []string{
		"FERMATA_ is not a setting, and is ignored; docs/settings.md has all settings",
		"FERMATA_APIKEYS is not a setting, and is ignored; did you mean FERMATA_API_KEYS?",
		"FERMATA_FLUX_CAPACITOR_VOLTAGE is not a setting, and is ignored; docs/settings.md has all settings",
		"FERMATA_MAXSANDBOXES is not a setting, and is ignored; did you mean FERMATA_MAX_SANDBOXES?",
		"FERMATA_PAUSETTL is not a setting, and is ignored; did you mean FERMATA_PAUSE_TTL?",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"ab", "ba", 2}, {"same", "same", 0}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// Settings that have no effect are told, those with a default value are not.
func TestIdleSettings(t *testing.T) {
	for _, c := range []struct{ args, want []string }{
		{[]string{"--api-keys=ada:x"}, nil},
		{[]string{"--auth=off", "--hosts=a"}, nil},
		{[]string{"--auth=off", "--sandbox=docker", "--docker-image=foo", "--docker-runtime=runsc"}, nil},
		{[]string{"--auth=off", "--docker-image=foo"}, []string{"FERMATA_DOCKER_IMAGE has no effect with FERMATA_SANDBOX=process"}},
		{
			[]string{"--auth=off", "--sandbox=docker", "--python=x", "--cgroups=optional"},
			[]string{"FERMATA_PYTHON has no effect", "FERMATA_CGROUPS has no effect"},
		},
		{[]string{"--auth=off", "--api-keys=ada:x"}, []string{"FERMATA_API_KEYS has no effect with FERMATA_AUTH=off"}},
		{[]string{"--api-keys=ada:x", "--hosts=a", "--redis-secret=x"}, []string{"FERMATA_REDIS_SECRET", "FERMATA_HOSTS"}},
	} {
		s, err := parse(t, c.args...)
		if err != nil {
			t.Fatal(err)
		}
		got := s.idle()
		if len(got) != len(c.want) {
			t.Errorf("%v: got %q, want %q", c.args, got, c.want)
			continue
		}
		for i, part := range c.want {
			if !strings.Contains(got[i], part) {
				t.Errorf("%v: got %q, want %q", c.args, got[i], part)
			}
		}
	}
}
