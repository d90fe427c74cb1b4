package main

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A setting is a field that a flag sets, or else a variable of the environment, or else its default.
// Tags of the field say more about it:
//
//	name         name of the flag. Without it, that of the field: MaxBody is --max-body.
//	short        letter of the flag
//	env          variables, the first one that is set counts; "-" for none. Without it, FERMATA_MAX_BODY.
//	default      value of a field that nothing sets
//	enum         the values that are allowed
//	type         path for the path of a file, which becomes absolute
//	placeholder  what the help shows instead of a value
//	help         what the setting means
//	arg          makes it an argument instead of a flag, which may be left out if it has a default
//
// A struct in a struct has settings as well. It may have the tag group, a headline for the help, and
// the tag prefix, for the names of its flags.
type setting struct {
	name, group string
	variables   []string
	tag         reflect.StructTag
	field       reflect.Value
	// given is whether a flag or an argument has set it.
	given bool
}

// lastSmall matches where a word begins in the name of a field.
var lastSmall = regexp.MustCompile(`([a-z])([A-Z])`)

// settingsOf returns the settings in a struct.
func settingsOf(from reflect.Value, group, prefix string) []*setting {
	var list []*setting
	for i := range from.NumField() {
		of, field := from.Type().Field(i), from.Field(i)
		if of.Type.Kind() == reflect.Struct && !reflect.PointerTo(of.Type).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
			list = append(list, settingsOf(field, cmp.Or(of.Tag.Get("group"), group), prefix+of.Tag.Get("prefix"))...)
			continue
		}
		s := &setting{group: group, tag: of.Tag, field: field}
		s.name = prefix + cmp.Or(of.Tag.Get("name"), strings.ToLower(lastSmall.ReplaceAllString(of.Name, "$1-$2")))
		if env := cmp.Or(of.Tag.Get("env"), variable(s.name)); env != "-" && !s.argument() {
			s.variables = strings.Split(env, ",")
		}
		list = append(list, s)
	}
	return list
}

func (s *setting) argument() bool {
	_, is := s.tag.Lookup("arg")
	return is
}

func (s *setting) choices() []string {
	if s.tag.Get("enum") == "" {
		return nil
	}
	return strings.Split(s.tag.Get("enum"), ",")
}

// secret reports whether no error may tell the value.
func (s *setting) secret() bool {
	switch s.field.Interface().(type) {
	case secret, []secret, []apiKey:
		return true
	}
	return false
}

// Set reads what a flag or an argument says. A flag of a list may be repeated. Set, String and Type
// implement pflag.Value.
func (s *setting) Set(text string) error {
	if strings.HasPrefix(text, "--") {
		// pflag takes the next flag for the value of a flag without one.
		return errors.New("a value cannot begin with --: is the value missing?")
	}
	if !s.given || s.field.Kind() != reflect.Slice {
		s.given = true
		return s.read(text)
	}
	before := s.field.Slice(0, s.field.Len())
	err := s.read(text)
	s.field.Set(reflect.AppendSlice(before, s.field))
	return err
}

func (s *setting) String() string { return s.tag.Get("default") }

// Type returns bool for a flag that needs no value.
func (s *setting) Type() string { return s.field.Kind().String() }

// readDefault reads the default.
func (s *setting) readDefault() error {
	if text, has := s.tag.Lookup("default"); has {
		return s.read(text)
	}
	return nil
}

// readEnvironment reads the first variable that is set, unless there has been a flag.
func (s *setting) readEnvironment() error {
	for _, name := range s.variables {
		text, is := os.LookupEnv(name)
		if !is || s.given {
			continue
		}
		if err := s.read(text); err != nil && s.secret() {
			return fmt.Errorf("--%s: %w (from %s)", s.name, err, name)
		} else if err != nil {
			return fmt.Errorf("--%s: %w (from %s=%q)", s.name, err, name, text)
		}
		return nil
	}
	return nil
}

func (s *setting) read(text string) error {
	if choices := s.choices(); choices != nil && !slices.Contains(choices, text) {
		return fmt.Errorf("must be one of %s, not %q", strings.Join(choices, ", "), text)
	}
	if s.tag.Get("type") == "path" {
		text = absolute(text)
	}
	return read(s.field, text)
}

// absolute returns an absolute path. A ~ at its beginning is the user's home directory.
func absolute(path string) string {
	if path == "" {
		return ""
	}
	if home, err := os.UserHomeDir(); err == nil && (path == "~" || strings.HasPrefix(path, "~/")) {
		return filepath.Join(home, path[1:])
	}
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// read reads the value of a field. If it is a list, there are commas between its values.
func read(field reflect.Value, text string) error {
	switch v := field.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		return v.UnmarshalText([]byte(text))
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("want a duration with a unit, such as 500ms, 30s, 5m or 24h, got %q", text)
		}
		*v = d
		return nil
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString(text)
	case reflect.Bool:
		switch strings.ToLower(text) {
		case "true", "1", "yes":
			field.SetBool(true)
		case "false", "0", "no":
			field.SetBool(false)
		default:
			return fmt.Errorf("want true or false, got %q", text)
		}
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 0, 64)
		if err != nil {
			return fmt.Errorf("want a whole number, got %q", text)
		}
		field.SetInt(n)
	case reflect.Float64:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("want a number, got %q", text)
		}
		field.SetFloat(n)
	case reflect.Pointer:
		value := reflect.New(field.Type().Elem())
		if err := read(value.Elem(), text); err != nil {
			return err
		}
		field.Set(value)
	case reflect.Slice:
		return readList(field, text)
	default:
		return errors.New("no setting can be of the type " + field.Type().String())
	}
	return nil
}

func readList(field reflect.Value, text string) error {
	field.SetZero()
	if text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		value := reflect.New(field.Type().Elem()).Elem()
		if err := read(value, part); err != nil {
			return err
		}
		field.Set(reflect.Append(field, value))
	}
	return nil
}
