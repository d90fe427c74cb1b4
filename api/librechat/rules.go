package librechat

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-playground/validator/v10"
	"github.com/go-playground/validator/v10/non-standard/validators"

	"fermata/api"
)

// toolRules are the values of a start with tools whose JSON types are right. The tags are the
// rules on them; refusal has the texts.
type toolRules struct {
	Code     string     `name:"code"     validate:"notblank"`
	Tools    []toolRule `name:"tools"    validate:"dive"`
	Timeout  float64    `name:"timeout"  validate:"gt=0,budget"`
	Language string     `name:"language" validate:"oneof=python py bash"`
}

type toolRule struct {
	// The name is kept with the execution.
	Name string `name:"name" validate:"required,max=256"`
}

// plainRules are the rules of a start without tools, which have other texts.
type plainRules struct {
	Code     string  `name:"plain code" validate:"notblank"`
	Language string  `name:"lang"       validate:"required,oneof=python py bash sh"`
	Timeout  float64 `name:"timeout"    validate:"gt=0,budget"`
}

// rules checks values by the tags of their struct.
type rules struct{ v *validator.Validate }

func newRules() rules {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string { return f.Tag.Get("name") })
	v.RegisterAlias("budget", fmt.Sprintf("min=%d,max=%d", api.MinTimeout.Milliseconds(), api.MaxTimeout.Milliseconds()))
	if err := v.RegisterValidation("notblank", validators.NotBlank); err != nil {
		panic(err) // Only an empty name is an error.
	}
	return rules{v}
}

// check returns the refusal of the first rule that the values break.
func (r rules) check(values any) error {
	if broken, ok := errors.AsType[validator.ValidationErrors](r.v.Struct(values)); ok {
		return refusal(broken[0])
	}
	return nil
}

// refusal returns the text for a rule that a value breaks.
func refusal(field validator.FieldError) *api.Error {
	// The namespace begins with the name of the type: toolRules.tools[0].name.
	_, path, _ := strings.Cut(field.Namespace(), ".")
	switch field.Field() + " " + field.Tag() {
	case "code notblank":
		return errCode
	case "plain code notblank":
		return errNoCode
	case "lang required":
		return errNoLanguage
	case "timeout gt":
		return errTimeout
	case "timeout budget":
		return errTimeoutRange
	case "language oneof":
		return permanent(fmt.Sprintf(`Unsupported language "%v"; supported values are "python" and "bash"`, field.Value()))
	case "lang oneof":
		refusal := permanent(fmt.Sprintf("Unsupported language: %v", field.Value()))
		refusal.Message = "This server runs Python (py, python) and shell scripts (bash, sh)"
		return refusal
	case "name max":
		return api.BadRequestf("%s must have at most %s characters", path, field.Param())
	default:
		return api.BadRequestf("%s must be a non-empty string", path)
	}
}
