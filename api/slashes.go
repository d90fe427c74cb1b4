package api

import (
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"
)

// tidy is a middleware before routing. It takes a path with a slash at its end, or with several slashes in a row, for
// the path without them, since clients and proxies join addresses so. There is no redirect, after which some
// clients would send neither body nor credentials.
func tidy(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		u := c.Request().URL
		if u.RawPath != "" {
			// A slash in the name of a file, which is %2F here, stays.
			if raw := tidied(u.RawPath); raw != u.RawPath {
				if path, err := url.PathUnescape(raw); err == nil {
					u.Path, u.RawPath = path, raw
				}
			}
		} else {
			u.Path = tidied(u.Path)
		}
		return next(c)
	}
}

// tidied returns a path without slashes at its end, and with one in place of several in a row.
func tidied(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	return path
}
