package files

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
)

// clearAWS removes what the environment says about object stores, and makes an empty directory home.
func clearAWS(t *testing.T) (home string) {
	t.Helper()
	for _, setting := range os.Environ() {
		if name, _, _ := strings.Cut(setting, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	home = t.TempDir()
	t.Setenv("HOME", home)
	return home
}

func open(t *testing.T, address string) (*s3Objects, error) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return openS3(u)
}

func TestEndpointOfABucket(t *testing.T) {
	clearAWS(t)
	for address, want := range map[string]string{
		"s3://bucket":                     "https://s3.amazonaws.com",
		"s3://bucket?region=eu-central-1": "https://s3.amazonaws.com",
		"s3://bucket?endpoint=http://h:9000&use_path_style=true": "http://h:9000",
		"s3://bucket?endpoint=https://h/":                        "https://h",
		"s3://bucket?endpoint=h:9000":                            "https://h:9000",
		"s3://bucket?endpoint=h:9000&disable_https=true":         "http://h:9000",
	} {
		s, err := open(t, address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if got := s.client.EndpointURL().String(); got != want || s.name != "bucket" {
			t.Errorf("%s: bucket %q at %s, want bucket at %s", address, s.name, got, want)
		}
	}
	t.Setenv("AWS_ENDPOINT_URL", "http://general")
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://special")
	if s, err := open(t, "s3://bucket"); err != nil || s.client.EndpointURL().Host != "special" {
		t.Errorf("with AWS_ENDPOINT_URL_S3: %v, want the host special", err)
	}
}

func TestParametersOfABucket(t *testing.T) {
	clearAWS(t)
	t.Setenv("AWS_REGION", "from-environment")
	for query, want := range map[string]s3Parameters{
		"":                       {region: "from-environment"},
		"region=r":               {region: "r"},
		"use_path_style=true":    {region: "from-environment", lookup: minio.BucketLookupPath},
		"s3ForcePathStyle=true":  {region: "from-environment", lookup: minio.BucketLookupPath},
		"s3ForcePathStyle=false": {region: "from-environment", lookup: minio.BucketLookupDNS},
		"anonymous=true":         {region: "from-environment", anonymous: true},
		"dualstack=1":            {region: "from-environment", dualstack: true},
		"profile=p&region=r":     {region: "r", profile: "p"},
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parametersOf(values); err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", query, got, err, want)
		}
	}
}

func TestRefusedURLs(t *testing.T) {
	clearAWS(t)
	for address, want := range map[string]string{
		"":                                     "file:///directory or s3://bucket",
		"/tmp":                                 "file:///directory or s3://bucket",
		"file://host/tmp":                      "file:///directory",
		"file:///tmp?metadata=skip":            `has "metadata=skip"`,
		"s3://b":                               `the bucket "b": Bucket name cannot be shorter than 3 characters`,
		"s3://":                                "s3://bucket",
		"s3://bucket/prefix":                   "s3://bucket",
		"s3://bucket?nonsense=1":               `the parameter "nonsense" is not known; known are anonymous, disable_https, dualstack, endpoint`,
		"s3://bucket?use_path_style=perhaps":   `the parameter use_path_style must be true or false, and is "perhaps"`,
		"s3://bucket?endpoint=ftp://h":         "endpoint must be http://host or https://host",
		"s3://bucket?endpoint=http://h/prefix": "endpoint must be http://host or https://host",
	} {
		if got, err := openObjects(address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v, want an error with %q", address, got, err, want)
		}
	}
}

func TestCredentialsOfABucket(t *testing.T) {
	home := clearAWS(t)
	key := func(address string) string {
		s, err := open(t, address)
		if err != nil {
			t.Fatal(err)
		}
		found, err := s.client.GetCreds()
		if err != nil {
			t.Fatal(err)
		}
		return found.AccessKeyID
	}
	shared := "[default]\naws_access_key_id = shared\naws_secret_access_key = x\n[other]\naws_access_key_id = other\naws_secret_access_key = x\n"
	if err := os.Mkdir(filepath.Join(home, ".aws"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".aws", "credentials"), []byte(shared), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := key("s3://bucket"); got != "shared" {
		t.Errorf("with shared files: got the key %q, want shared", got)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "environment")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	if got := key("s3://bucket"); got != "environment" {
		t.Errorf("with variables and shared files: got the key %q, want environment", got)
	}
	if got := key("s3://bucket?profile=other"); got != "other" {
		t.Errorf("with a profile: got the key %q, want other", got)
	}
	if got := key("s3://bucket?anonymous=true"); got != "" {
		t.Errorf("anonymous: got the key %q, want none", got)
	}
}
