package harness_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"fermata/engine/tools/config"
	"fermata/tests/harness"
)

// TestStandardToolsets checks that the toolsets of the tests are without mistakes.
func TestStandardToolsets(t *testing.T) {
	path := harness.WriteToolsets(t, harness.NewUpstream(t), harness.StandardToolsets)
	if _, err := config.Read(path, os.LookupEnv); err != nil {
		t.Error(err)
	}
}

// TestUpstream checks that an upstream answers, and knows what it was asked.
func TestUpstream(t *testing.T) {
	u, key := harness.NewUpstream(t), harness.NewKey()
	answers := make(chan string, 3)
	post := func(path string) {
		a, err := http.Post(u.URL+path, "application/json", strings.NewReader(`{"n":1,"key":"`+key+`"}`))
		if err != nil {
			answers <- err.Error()
			return
		}
		defer a.Body.Close()
		text, _ := io.ReadAll(a.Body)
		answers <- strings.TrimSpace(string(text))
	}
	go post("/hold")
	go post("/hold")
	u.Await(t, key, 2)
	if got := u.Together(key); got != 2 {
		t.Errorf("%d requests at once, want 2", got)
	}
	u.Release(key)
	post("/echo")
	for range 3 {
		if got, want := <-answers, `{"key":"`+key+`","n":1}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	u.Sent(t, key, 3)
}
