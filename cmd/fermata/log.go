package main

import (
	"io"
	"log/slog"
)

// logSettings are the settings of the log.
type logSettings struct {
	Level  slog.Level `default:"info" help:"Lowest level to log: debug, info, warn or error."`
	Format string     `enum:"text,json" default:"text" help:"Format of the log: text for people, json for machines."`
}

// logger returns the log of the server, which it writes to w.
func (s *logSettings) logger(w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: s.Level}
	if s.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
