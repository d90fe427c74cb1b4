package main

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

const (
	// helpWidth is how many characters a line of the help has.
	helpWidth = 80
	// maxTerm is how many characters of a line a term may take before its explanation.
	maxTerm = 30
)

// printHelp prints the help of a command.
func (c *command) printHelp(out io.Writer) error {
	usage := []string{"Usage: fermata"}
	if c.name != "" {
		usage = append(usage, c.name)
	}
	if len(c.below) > 0 {
		usage = append(usage, "<command>")
	}
	var arguments []term
	var groups []string // in the order of the settings
	flags := map[string][]term{}
	for _, s := range c.settings() {
		t := term{s.written(), s.explanation()}
		switch {
		case s.argument():
			usage, arguments = append(usage, t.text), append(arguments, t)
			continue
		case flags[s.group] == nil:
			groups = append(groups, s.group)
		}
		flags[s.group] = append(flags[s.group], t)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s [flags]\n\n%s\n", strings.Join(usage, " "), strings.Join(wrapped(c.help, helpWidth), "\n"))
	writeTerms(&b, "Commands", c.leaves())
	writeTerms(&b, "Arguments", arguments)
	for _, group := range groups {
		writeTerms(&b, cmp.Or(group, "Flags"), flags[group])
	}
	if c.name == "" {
		b.WriteString("\nRun \"fermata <command> --help\" for more information on a command.\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// A term is a command, a flag or an argument, and what it means.
type term struct{ text, explanation string }

// leaves returns the commands below c that are no groups.
func (c *command) leaves() []term {
	var leaves []term
	for _, b := range c.below {
		if len(b.below) > 0 {
			leaves = append(leaves, b.leaves()...)
		} else {
			leaves = append(leaves, term{b.name, b.help})
		}
	}
	return leaves
}

// written returns how a setting is written in a command line.
func (s *setting) written() string {
	value, optional := s.tag.Lookup("default")
	switch {
	case s.argument() && optional:
		return "[<" + s.name + ">]"
	case s.argument():
		return "<" + s.name + ">"
	case s.tag.Get("short") != "":
		return "-" + s.tag.Get("short") + ", --" + s.name
	case s.field.Kind() == reflect.Bool:
		return "--" + s.name
	}
	value = cmp.Or(s.tag.Get("placeholder"), value, strings.ToUpper(s.name))
	if s.field.Kind() == reflect.Slice {
		value += ",..."
	}
	return "--" + s.name + "=" + value
}

// explanation returns what a setting means, and the variables that set it.
func (s *setting) explanation() string {
	text := s.tag.Get("help")
	if len(s.variables) == 0 {
		return text
	}
	return strings.TrimSuffix(text, ".") + " ($" + strings.Join(s.variables, ", $") + ")."
}

// writeTerms writes terms and their explanations, in two columns.
func writeTerms(b *strings.Builder, title string, terms []term) {
	if len(terms) == 0 {
		return
	}
	width := 0
	for _, t := range terms {
		if n := utf8.RuneCountInString(t.text); n <= maxTerm {
			width = max(width, n)
		}
	}
	const left, between = "  ", "  "
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, t := range terms {
		if utf8.RuneCountInString(t.text) > width {
			fmt.Fprintf(b, "%s%s\n", left, t.text)
			t.text = ""
		}
		for _, line := range wrapped(t.explanation, helpWidth-len(left)-width-len(between)) {
			fmt.Fprintf(b, "%s%-*s%s%s\n", left, width, t.text, between, line)
			t.text = ""
		}
	}
}

// wrapped returns the lines of a text, which have at most width characters if no word has more.
func wrapped(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line+" "+word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}
