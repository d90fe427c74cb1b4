package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// envPrefix begins the names of all environment variables of the server.
const envPrefix = "FERMATA_"

// mistakes are what is wrong with the settings.
type mistakes []error

// unless adds what the value of a flag must be, unless it is ok.
func (m *mistakes) unless(ok bool, flag, must string) {
	if !ok {
		*m = append(*m, fmt.Errorf("--%s must be %s (%s)", flag, must, variable(flag)))
	}
}

// variable returns the name of the environment variable of a flag.
func variable(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// address adds how to write an address to listen on, unless it is written so.
func (m *mistakes) address(flag, addr string) {
	m.unless(listenable(addr), flag, addrForm(addr))
}

// listenable reports whether a text is a host and a port, or a port behind a colon.
func listenable(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// addrForm says how to write an address to listen on.
func addrForm(addr string) string {
	return fmt.Sprintf("HOST:PORT, such as 127.0.0.1:8000, [::1]:8000, or :8000 for every address of this machine, "+
		"with a port from 0 to 65535, and is %q", addr)
}
