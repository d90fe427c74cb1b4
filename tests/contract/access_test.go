package contract

import (
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestAuthentication sends credentials in every place that the server looks for them.
func TestAuthentication(t *testing.T) {
	basic := func(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }
	cases := []struct {
		name   string
		header http.Header
		want   int
	}{
		{"X-API-Key", http.Header{"X-Api-Key": {"key-a"}}, 200},
		{"Bearer", http.Header{"Authorization": {"Bearer key-a"}}, 200},
		{"bearer in small letters", http.Header{"Authorization": {"bearer key-a"}}, 200},
		{"ApiKey", http.Header{"Authorization": {"ApiKey key-a"}}, 200},
		{"APIKEY in capitals", http.Header{"Authorization": {"APIKEY key-a"}}, 200},
		{"Basic user", http.Header{"Authorization": {basic("key-a:")}}, 200},
		{"Basic password", http.Header{"Authorization": {basic(":key-a")}}, 200},
		{"good key, foreign Authorization", http.Header{"X-Api-Key": {"key-a"}, "Authorization": {"Bearer other"}}, 200},
		{"foreign key, good Authorization", http.Header{"X-Api-Key": {"other"}, "Authorization": {"Bearer key-a"}}, 200},
		{"none", nil, 401},
		{"empty", http.Header{"X-Api-Key": {""}}, 401},
		{"wrong", http.Header{"X-Api-Key": {"key-c"}}, 401},
		{"the name for the key", http.Header{"X-Api-Key": {"alice"}}, 401},
		{"a prefix", http.Header{"X-Api-Key": {"key-"}}, 401},
		{"Bearer without a key", http.Header{"Authorization": {"Bearer "}}, 401},
		{"unknown scheme", http.Header{"Authorization": {"Digest key-a"}}, 401},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Client{URL: harness.Serve(t, s, nil).URL}
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				a, err := c.Request(t.Context(), "POST", harness.Programmatic, tc.header, harness.Program{Code: "print(1)"})
				if err != nil {
					t.Fatal(err)
				}
				if a.HTTPStatus != tc.want {
					t.Errorf("got %v, want %d", a, tc.want)
				}
				if want := "Invalid or missing API key"; tc.want == 401 && a.Error != want {
					t.Errorf("error = %q, want %q", a.Error, want)
				}
			})
		}
		t.Run("before the body", func(t *testing.T) {
			a, err := c.Request(t.Context(), "POST", harness.Programmatic, nil, "{")
			if err != nil || a.HTTPStatus != 401 {
				t.Errorf("got %v %v, want 401", a, err)
			}
		})
	})
}

// TestWrongKeysWait checks that the answer to a wrong key comes late, so that nobody can try many
// keys.
func TestWrongKeysWait(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.ProcessSetup(), nil)
	for _, key := range []string{"key-b.", "k"} {
		began := time.Now()
		a, err := harness.Client{URL: s.URL, Key: key}.Send(t.Context(), harness.Program{Code: "print(1)"})
		if err != nil || a.HTTPStatus != http.StatusUnauthorized || time.Since(began) < 250*time.Millisecond {
			t.Errorf("got %v %v after %v, want 401 after 250 ms", a, err, time.Since(began))
		}
	}
}

// TestShortKeysAreRefused starts a server with a key that can be guessed. On an address that
// other machines can reach the server refuses to start, on localhost it warns.
func TestShortKeysAreRefused(t *testing.T) {
	t.Parallel()
	s, err := harness.NewServer(harness.With(harness.Common, harness.Settings{"ADDR": "0.0.0.0:0", "API_KEYS": "alice:a-long-key-of-alice,bob:key-b"}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.RemoveGroups() }()
	if err := s.Start(); err == nil {
		harness.StopAfter(t, s)
	}
	if log := s.Log.All(); !strings.Contains(log, "that of bob has 5") || !strings.Contains(log, "openssl rand -hex 24") || strings.Contains(log, "key-b") {
		t.Errorf("the server says %q, want whose key is short and how to make a better one, and not the key", log)
	}
	ours := harness.Serve(t, harness.ProcessSetup(), nil)
	if log := ours.Log.All(); !strings.Contains(log, "short enough to be guessed") || strings.Contains(log, "key-a") {
		t.Errorf("the server says %q, want a warning of the short key", log)
	}
}

// TestOpenServers sends requests that a web page can make a browser send. A server without
// authentication must refuse those that come from other sites.
func TestOpenServers(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.ProcessSetup(), harness.Settings{"AUTH": "off", "API_KEYS": "", "HOSTS": "fermata, other.example"})
	address := strings.TrimPrefix(s.URL, "http://")
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, host string
		header     http.Header
		status     int
	}{
		{"its address", address, nil, 200},
		{"another address", "10.1.2.3", nil, 200},
		{"an address of version 6", "[::1]:" + port, nil, 200},
		{"localhost", "localhost:" + port, nil, 200},
		{"a name that was set", "fermata:8000", nil, 200},
		{"another that was set", "OTHER.example", nil, 200},
		{"a page of its own", address, http.Header{"Origin": {"http://" + address}, "Sec-Fetch-Site": {"same-origin"}}, 200},
		{"a name of somebody's", "rebound.example:" + port, nil, 403},
		{"a name like an address", "127.0.0.1.rebound.example", nil, 403},
		{"a name like localhost", "localhost.rebound.example", nil, 403},
		{"a page of another site", address, http.Header{"Origin": {"https://evil.example"}}, 403},
		{"a page of another port", "localhost:" + port, http.Header{"Origin": {"http://localhost:3000"}, "Sec-Fetch-Site": {"same-site"}}, 403},
		{"a page without an origin", address, http.Header{"Origin": {"null"}}, 403},
		{"a browser that tells", address, http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
	} {
		for _, path := range []string{harness.Programmatic, "/exec", "/upload"} {
			contentType, body := "application/json", `{"lang":"py","code":"print(1)"}`
			if path == "/upload" {
				contentType = "multipart/form-data; boundary=x"
				body = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n1\r\n--x--\r\n"
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(r.Header, c.header)
			r.Host = c.host
			r.Header.Set("Content-Type", contentType)
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(response.Body)
			if err := errors.Join(err, response.Body.Close()); err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != c.status || c.status == 403 && !strings.Contains(string(text), "FERMATA_AUTH") {
				t.Errorf("%s, %s: got %d %s, want %d", c.name, path, response.StatusCode, text, c.status)
			}
		}
	}
}
