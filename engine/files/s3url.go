package files

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
)

const (
	// amazon is the host of the object store if the URL names none.
	amazon = "s3.amazonaws.com"
	// attempts is how often a request is sent that fails because of the network or the object store.
	attempts = 3
)

// s3Parameters are the parameters of an s3 URL: how an object store is reached.
type s3Parameters struct {
	// endpoint is the URL, or the host, of an object store that is not Amazon's.
	endpoint string
	// region is the region of the bucket. Without it the object store is asked.
	region string
	// profile is a profile of the shared files of AWS.
	profile string
	// anonymous says that requests are not signed.
	anonymous bool
	// disableHTTPS says that an endpoint without a scheme is reached over HTTP.
	disableHTTPS bool
	// dualstack says that Amazon is reached by the names that have IPv6 addresses too.
	dualstack bool
	// lookup says whether the bucket stands in the path of a request or in the name of the host.
	lookup minio.BucketLookupType
}

// parametersOf reads the parameters of a URL. AWS's environment variables are the defaults.
func parametersOf(query url.Values) (p s3Parameters, err error) {
	p.endpoint = cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	p.region = cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	texts := map[string]*string{"endpoint": &p.endpoint, "region": &p.region, "profile": &p.profile}
	inPath := false
	switches := map[string]*bool{
		"anonymous": &p.anonymous, "disable_https": &p.disableHTTPS, "dualstack": &p.dualstack,
		"use_path_style": &inPath, "s3ForcePathStyle": &inPath,
	}
	for name, values := range query {
		value := values[len(values)-1]
		text, flag := texts[name], switches[name]
		switch {
		case text != nil:
			*text = value
		case flag != nil:
			if *flag, err = strconv.ParseBool(value); err != nil {
				return p, fmt.Errorf("the parameter %s must be true or false, and is %q", name, value)
			}
		default:
			return p, fmt.Errorf("the parameter %q is not known; known are %s", name, known(texts, switches))
		}
		if flag == &inPath {
			p.lookup = minio.BucketLookupDNS
		}
	}
	if inPath {
		p.lookup = minio.BucketLookupPath
	}
	return p, nil
}

func known(texts map[string]*string, switches map[string]*bool) string {
	var names []string
	for name := range texts {
		names = append(names, name)
	}
	for name := range switches {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// host returns the host of the object store, and whether it is reached over HTTPS.
func (p s3Parameters) host() (host string, secure bool, err error) {
	if p.endpoint == "" {
		return amazon, !p.disableHTTPS, nil
	}
	if !strings.Contains(p.endpoint, "://") {
		return p.endpoint, !p.disableHTTPS, nil
	}
	u, err := url.Parse(p.endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return "", false, errors.New("the parameter endpoint must be http://host or https://host, with a port if need be")
	}
	return u.Host, u.Scheme == "https", nil
}

// credentials returns where keys come from: environment variables, the shared files of AWS, and the
// role of the container or the machine.
func (p s3Parameters) credentials() *credentials.Credentials {
	if p.anonymous {
		return credentials.NewStatic("", "", "", credentials.SignatureAnonymous)
	}
	files := &credentials.FileAWSCredentials{Profile: p.profile}
	if p.profile != "" {
		return credentials.New(files)
	}
	return credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, files, &credentials.IAM{}})
}

// openS3 opens the bucket that a URL names. It does not ask the object store yet.
func openS3(u *url.URL) (*s3Objects, error) {
	if u.Host == "" || strings.Trim(u.Path, "/") != "" || u.User != nil {
		return nil, errors.New("the URL of a bucket has the form s3://bucket")
	}
	if err := s3utils.CheckValidBucketName(u.Host); err != nil {
		return nil, fmt.Errorf("the bucket %q: %w", u.Host, err)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("parameters of the URL: %w", err)
	}
	p, err := parametersOf(query)
	if err != nil {
		return nil, err
	}
	host, secure, err := p.host()
	if err != nil {
		return nil, err
	}
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, fmt.Errorf("prepare for %s: %w", host, err)
	}
	client, err := minio.New(host, &minio.Options{
		Creds: p.credentials(), Secure: secure, Transport: transport, Region: p.region, BucketLookup: p.lookup, MaxRetries: attempts,
	})
	if err != nil {
		return nil, fmt.Errorf("object store %s: %w", host, err)
	}
	client.SetS3EnableDualstack(p.dualstack)
	return &s3Objects{client: minio.Core{Client: client}, name: u.Host, anonymous: p.anonymous, transport: transport}, nil
}
