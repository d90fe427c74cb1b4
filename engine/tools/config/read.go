package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A reader reads all files once. It has a method for each part of a file.
type reader struct {
	env      func(string) (string, bool)
	file     *File
	mistakes []*Mistake
	// order is the index of each file.
	order map[string]int
	Stamp
	size int64
	// toolsets, classes, policies and principals have the place where each name was defined.
	toolsets, classes, policies, principals map[string]value
}

// Read reads a file, or the files of a directory whose names end in .yaml or .yml. The function env
// looks up environment variables. If there are mistakes, Read returns no File and an error that joins them;
// see Mistakes. Files that change while they are read are read again.
func Read(path string, env func(string) (string, bool)) (*File, error) {
	file, _, err := ReadStamped(path, env)
	return file, err
}

// ReadStamped is like Read, and also returns which files were read, whether or not there are mistakes.
func ReadStamped(path string, env func(string) (string, bool)) (*File, Stamp, error) {
	const attempts = 3
	var stamp Stamp
	for range attempts {
		r := &reader{
			env: env, file: &File{Policies: map[string]Policy{}, Principals: map[string]string{}},
			order: map[string]int{}, Stamp: Stamp{opened: map[string]os.FileInfo{}},
			toolsets: map[string]value{}, classes: map[string]value{}, policies: map[string]value{}, principals: map[string]value{},
		}
		r.read(path)
		if stamp = r.Stamp; stamp.Unchanged() {
			file, err := r.result()
			return file, stamp, err
		}
	}
	return nil, stamp, errors.Join(&Mistake{File: path, Text: "changes while it is read; write a new file beside it and rename it when it is whole"})
}

// result returns the file, or the mistakes by file and line.
func (r *reader) result() (*File, error) {
	if len(r.mistakes) == 0 {
		return r.file, nil
	}
	slices.SortStableFunc(r.mistakes, func(a, b *Mistake) int {
		return cmp.Or(cmp.Compare(r.order[a.File], r.order[b.File]), cmp.Compare(a.Line, b.Line))
	})
	if more := len(r.mistakes) - maxMistakes; more > 0 {
		last := r.mistakes[maxMistakes]
		r.mistakes = append(r.mistakes[:maxMistakes], &Mistake{File: last.File, Line: last.Line, Text: fmt.Sprintf("from here on there are %d more mistakes", more)})
	}
	joined := make([]error, len(r.mistakes))
	for i, m := range r.mistakes {
		joined[i] = m
	}
	return nil, errors.Join(joined...)
}

// read reads the file or directory.
func (r *reader) read(path string) {
	files := []string{path}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		if files, err = listDirectory(path); err == nil {
			r.directory, r.list = path, files
			switch {
			case len(files) == 0:
				r.wrong(path, 0, "", "has no file whose name ends in .yaml or .yml")
			case len(files) > MaxFiles:
				r.wrong(path, 0, "", "has %d files; at most %d are allowed", len(files), MaxFiles)
				files = nil
			}
		}
	}
	if err != nil {
		r.note(path)
		r.wrong(path, 0, "", "%s", openProblem(err))
		return
	}
	for i, file := range files {
		r.order[file] = i
		r.readFile(file)
	}
	if len(r.mistakes) == 0 && len(r.file.Toolsets) == 0 {
		r.wrong(path, 0, "", "names no toolset; write at least one below toolsets")
	}
	r.checkNames()
}

// listDirectory returns the toolset files of a directory, sorted. It leaves out names that begin with a dot,
// which editors and Kubernetes use.
func listDirectory(path string) ([]string, error) {
	found, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range found {
		name := entry.Name()
		if ext := filepath.Ext(name); !strings.HasPrefix(name, ".") && (ext == ".yaml" || ext == ".yml") {
			files = append(files, filepath.Join(path, name))
		}
	}
	return files, nil
}

// readFile reads one file into r.file.
func (r *reader) readFile(file string) {
	text, problem := r.open(file, MaxFile)
	if problem != "" {
		r.wrong(file, 0, "", "%s", problem)
		return
	}
	if r.size += int64(len(text)); r.size > MaxFile {
		r.wrong(file, 0, "", "with it the files have more than %d bytes together; split what they say over several servers", MaxFile)
		return
	}
	top, ok := r.parse(file, text)
	if !ok || !top.plain(0) {
		return
	}
	if _, foreign := find(top.node, "openapi", "swagger"); foreign {
		top.wrong("is an OpenAPI document; move it elsewhere and name it in the openapi.file of a toolset")
		return
	}
	m := top.members("toolsets", "policies", "principals")
	if v, found := m.get("toolsets"); found {
		r.readToolsets(v)
	}
	if v, found := m.get("policies"); found {
		r.readPolicies(v)
	}
	if v, found := m.get("principals"); found {
		r.readPrincipals(v)
	}
}

// find returns the first member of a map that has one of the names.
func find(node *yaml.Node, names ...string) (*yaml.Node, bool) {
	if node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if slices.Contains(names, node.Content[i].Value) {
				return node.Content[i+1], true
			}
		}
	}
	return nil, false
}

// yamlLine matches the beginning of the errors of the YAML parser.
var yamlLine = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?`)

// parse reads the only document of a file.
func (r *reader) parse(file string, text []byte) (value, bool) {
	if i := bytes.IndexFunc(text, func(c rune) bool { return c == 0 || c == utf8.RuneError }); i >= 0 {
		why := "is not UTF-8; save it as UTF-8"
		if text[i] == 0 {
			why = "has a character NUL; is it a text file?"
		}
		r.wrong(file, 1+bytes.Count(text[:i], []byte("\n")), "", "%s", why)
		return value{}, false
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) || err == nil && document.Content[0].Kind == yaml.ScalarNode && document.Content[0].ShortTag() == "!!null" {
		r.wrong(file, 0, "", "is empty; write at least one toolset below toolsets")
		return value{}, false
	}
	if err == nil {
		if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
			r.wrong(file, second.Line, "", "has a second document; put everything into one, without ---")
			return value{}, false
		}
		return value{r: r, node: document.Content[0], file: file, line: document.Content[0].Line}, true
	}
	found := yamlLine.FindStringSubmatch(err.Error())
	line := 0
	if found != nil {
		line, _ = strconv.Atoi(found[1]) // It is empty if there is no line.
	}
	problem := Printable(yamlLine.ReplaceAllString(err.Error(), ""))
	if strings.Contains(problem, "cannot start any token") {
		problem += "; indent with blanks, not with tabs, and put quotes around texts that begin with a special character"
	}
	r.wrong(file, line, "", "is no YAML: %s", problem)
	return value{}, false
}

// open reads a file of at most limit bytes. If the file cannot be used, problem says why.
func (r *reader) open(path string, limit int64) (text []byte, problem string) {
	// A pipe must not block the server. The checks below are made on the opened file, which nobody can
	// replace.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		r.note(path)
		return nil, openProblem(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, openProblem(err)
	}
	r.opened[path] = info
	if problem := judge(path, info, limit); problem != "" {
		return nil, problem
	}
	whole := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	if _, err := whole.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, openProblem(err)
	}
	if int64(whole.Len()) > limit {
		return nil, tooLarge(limit)
	}
	return whole.Bytes(), ""
}

// judge says why a file cannot be used, or returns "" if it can.
func judge(path string, info os.FileInfo, limit int64) string {
	switch {
	case !info.Mode().IsRegular():
		return "is no regular file"
	case othersWrite(path, info):
		return fmt.Sprintf("may be written by other users (its permissions are %04o); run chmod go-w on it", info.Mode().Perm())
	case info.Size() > limit:
		return tooLarge(limit)
	}
	// A user who may write to the directory of a file, or of a link to it, can replace the file.
	directories := []string{filepath.Dir(path)}
	if target, err := filepath.EvalSymlinks(path); err == nil && filepath.Dir(target) != directories[0] {
		directories = append(directories, filepath.Dir(target))
	}
	for _, directory := range directories {
		info, err := os.Stat(directory)
		if err != nil {
			return openProblem(err)
		}
		if info.Mode()&os.ModeSticky == 0 && othersWrite(directory, info) {
			return fmt.Sprintf("its directory may be written by other users (its permissions are %04o); run chmod go-w on the directory", info.Mode().Perm())
		}
	}
	return ""
}

// othersWrite reports whether users other than the owner may write to a file or directory. Permissions do
// not count on a read-only mount, such as those of Kubernetes.
func othersWrite(path string, info os.FileInfo) bool {
	const group, all, write = 0o020, 0o002, 2
	return info.Mode().Perm()&(group|all) != 0 && !errors.Is(syscall.Access(path, write), syscall.EROFS)
}

func tooLarge(limit int64) string {
	return fmt.Sprintf("has more than the %d bytes that are allowed", limit)
}

// openProblem returns the reason for which a file cannot be read, without its name.
func openProblem(err error) string {
	if reason := new(os.PathError); errors.As(err, &reason) {
		err = reason.Err
	}
	return fmt.Sprintf("cannot be read: %v", err)
}
