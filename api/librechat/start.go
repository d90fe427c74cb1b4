package librechat

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/engine"
	"fermata/engine/core"
	"fermata/engine/files"
	"fermata/stubs"
)

// A program is the part of a start that the two paths read in different ways.
type program struct {
	// callsTools is true if the program may call tools.
	callsTools bool
	tools      []stubs.Tool
	traits     map[string]core.Traits
	args       []string
	timeout    time.Duration
	mode       engine.Mode
}

// startOf returns the start that a request asks for, or refuses it. It notes the session for the
// answer as soon as the client may learn of it.
func (p *programs) startOf(c echo.Context, r received, read func(request) (program, error)) (engine.Start, error) {
	who := api.PrincipalOf(c)
	session, given, err := sessionOf(r.body)
	if err != nil {
		return engine.Start{}, err
	}
	if given {
		api.SetSession(c, session)
	}
	program, err := read(r.body)
	if err != nil {
		return engine.Start{}, err
	}
	grant, err := grantOf(r.body)
	if err != nil {
		return engine.Start{}, err
	}
	if grant.approvals && !program.callsTools {
		return engine.Start{}, errExecApprovals
	}
	depth, err := api.DepthOf(c.Request().Header)
	if err != nil {
		return engine.Start{}, err
	}
	contract, err := p.contractedOf(r.body, program.mode)
	if err != nil {
		return engine.Start{}, err
	}
	about, err := aboutOf(c.Request().Header, r.body)
	if err != nil {
		return engine.Start{}, err
	}
	wanted, err := p.filesOf(c, r.body.Files, program.callsTools)
	if err != nil {
		return engine.Start{}, err
	}
	api.SetSession(c, session)
	at, err := p.place(c.Request().Context(), who, session, given, wanted)
	if err != nil {
		return engine.Start{}, err
	}
	api.SetSession(c, at.session)
	return engine.Start{
		Principal: who.ID,
		Session:   at.session,
		Code:      json.RawMessage(r.body.Code),
		Tools:     program.tools,
		Traits:    program.traits,
		Args:      program.args,
		Timeout:   program.timeout,
		Mode:      program.mode,
		Request:   r.hashWith(about),
		RequestID: r.id,
		Key:       r.key,
		Inputs:    at.inputs,
		Staging:   at.staging,
		Scope:     at.scope,
		Contract:  contractOf(program),
		WantValue: program.callsTools,
		Title:     about.title,
		Labels:    about.labels,
		Parent:    about.parent,
		Depth:     depth,

		Outputs: contract.outputs, SentOutputs: contract.sent, SentTimeline: contract.timeline, Include: contract.include,

		Toolsets: grant.toolsets, Sequential: grant.sequential, MaxCost: grant.maxCost, Approvals: grant.approvals,
	}, nil
}

// contractOf returns the contract by which a program is started.
func contractOf(p program) string {
	if p.callsTools {
		return engine.Programmatic
	}
	return engine.Exec
}

// hashWith returns the hash of a start. A parent means the same in the header as in the body, so that
// starts of different parents are no retries of each other.
func (r received) hashWith(a about) string {
	if !a.byHeader {
		return r.hash
	}
	sum := sha256.Sum256([]byte(r.hash + "\n" + a.parent))
	return hex.EncodeToString(sum[:])
}

// toolProgram reads a program that calls tools.
func (p *programs) toolProgram(r request) (program, error) {
	tools, err := toolsOf(r.Tools, p.limits.Tools)
	if err != nil {
		return program{}, err
	}
	if err := languageTypes(r); err != nil {
		return program{}, err
	}
	timeout, err := milliseconds(r.Timeout)
	if err != nil {
		return program{}, err
	}
	code, _ := unquote(r.Code)
	values := toolRules{Code: code, Timeout: timeout, Language: languageOf(r)}
	for _, t := range tools {
		values.Tools = append(values.Tools, toolRule{t.Name})
	}
	if err := p.rules.check(values); err != nil {
		return program{}, err
	}
	traits, err := traitsOf(r.Tools.entries, tools, p.keys())
	if err != nil {
		return program{}, err
	}
	return program{callsTools: true, tools: tools, traits: traits, timeout: budgetOf(timeout), mode: modeOf(values.Language)}, nil
}

// plainProgram reads a program without tools.
func (p *programs) plainProgram(r request) (program, error) {
	code, ok := unquote(r.Code)
	if !ok {
		return program{}, errCode
	}
	if err := languageTypes(r); err != nil {
		return program{}, err
	}
	timeout, err := milliseconds(r.Timeout)
	if err != nil {
		return program{}, err
	}
	args, err := argsOf(r.Args)
	if err != nil {
		return program{}, err
	}
	values := plainRules{Code: code, Timeout: timeout}
	if !isNull(r.Lang) || !isNull(r.Language) {
		values.Language = languageOf(r)
	}
	if err := p.rules.check(values); err != nil {
		return program{}, err
	}
	return program{args: args, timeout: budgetOf(timeout), mode: modeOf(values.Language)}, nil
}

// modeOf returns how programs in a language are run.
func modeOf(language string) engine.Mode {
	switch language {
	case "bash", "sh":
		return engine.Bash
	}
	return engine.Python
}

// milliseconds returns the run budget that a request asks for, with fractions rounded up.
func milliseconds(timeout jsontext.Value) (float64, error) {
	if timeout == nil {
		return float64(api.DefaultTimeout.Milliseconds()), nil
	}
	if timeout.Kind() != jsontext.KindNumber {
		return 0, errTimeout
	}
	// A number too large for a float becomes an infinity, which is out of range.
	ms, _ := strconv.ParseFloat(string(timeout), 64)
	return math.Ceil(ms), nil
}

// budgetOf returns the run budget of so many milliseconds, which the rules have checked.
func budgetOf(milliseconds float64) time.Duration {
	return time.Duration(milliseconds) * time.Millisecond
}

// languageTypes refuses a language that is not a string.
func languageTypes(r request) error {
	if _, ok := unquote(r.Language); !ok && !isNull(r.Language) {
		return errLanguage
	}
	if _, ok := unquote(r.Lang); !ok && !isNull(r.Lang) {
		return errLang
	}
	return nil
}

// languageOf returns the language of a program. "language" takes precedence over "lang".
func languageOf(r request) string {
	for _, v := range []jsontext.Value{r.Language, r.Lang} {
		if !isNull(v) {
			return spelled(v)
		}
	}
	return "python"
}

// sessionOf returns the session that a request names, or a new one if the request names
// none that could be ours.
func sessionOf(r request) (id string, given bool, err error) {
	id, ok := unquote(r.Session)
	switch {
	case !ok && !isNull(r.Session):
		return "", false, errSession
	case files.ValidID(id):
		return id, true, nil
	}
	return files.NewID(), false, nil
}
