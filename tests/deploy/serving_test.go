package deploy

import (
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestServingTells checks that the line serving tells what the server consists of, and no credentials.
func TestServingTells(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.With(harness.JSONLog, harness.Toolsets(t)))
		line := server.Log.AwaitLines(t, 1, harness.LogLine{"msg": "serving"})[0]
		if line.Text("sandbox") == "process" && (line.Text("python") == "" || !strings.HasPrefix(line.Text("python_version"), "3.")) {
			t.Errorf("line %v, want path and version of Python", line)
		}
		if libraries := line.Text("libraries") + " " + line.Text("missing"); line.Text("sandbox") == "process" && !strings.Contains(libraries, "numpy") {
			t.Errorf("line %v, want which libraries there are", line)
		}
		if line.Text("sandbox") == "docker" && line.Text("image") != server.Settings["DOCKER_IMAGE"] {
			t.Errorf("line %v, want the image", line)
		}
		if line.Number("pool_plain") != 1 || line.Number("pool_scientific") != 1 || line.Number("max_sandboxes") < 1 {
			t.Errorf("line %v, want the pools", line)
		}
		store := "embedded"
		if url := server.Settings["REDIS_URL"]; url != "" {
			store, _, _ = strings.Cut(url, "?")
		}
		if line.Text("store") != store || line.Text("state_dir") != server.Settings["STATE_DIR"] ||
			line.Text("files") != "file://"+server.Settings["STATE_DIR"]+"/files" || line.Text("auth") != "keys" || line.Text("version") == "" {
			t.Errorf("line %v, want store %q, the directories, the version and who may use it", line, store)
		}
		if file := server.Settings["TOOLSETS"]; line.Text("toolsets_file") != file {
			t.Errorf("line %v, want the toolsets file %q", line, file)
		}
		for _, secret := range []string{"key-a", harness.Secret, harness.UpstreamSecret} {
			if strings.Contains(server.Log.All(), secret) {
				t.Errorf("the log has %q", secret)
			}
		}
	})
}
