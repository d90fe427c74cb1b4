package librechat

import (
	"net/http"
	"strings"

	"fermata/api"
	"fermata/engine/core"
)

// A plainAnswer is the answer for a program without tools. Its pointers are null where
// there is nothing to say.
type plainAnswer struct {
	SessionID string   `json:"session_id"`
	Stdout    string   `json:"stdout"`
	Stderr    string   `json:"stderr"`
	Files     []output `json:"files"`
	leftovers
	Code     *int    `json:"code"`
	Signal   *string `json:"signal"`
	Message  *string `json:"message"`
	Status   *string `json:"status"`
	WallTime int64   `json:"wall_time"`
	// Reason and Detail tell why the program has not completed.
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
	verdict
}

// plainAnswerOf returns the answer for the end of a program without tools. Clients show the model
// only stdout and stderr, so stderr tells of an end that the program's own output cannot tell.
func plainAnswerOf(outcome core.Outcome, prefix string) (plainAnswer, error) {
	exit, err := api.ExitOf(outcome)
	if err != nil {
		return plainAnswer{}, err
	}
	answer := plainAnswer{
		SessionID: outcome.Session, Stdout: outcome.Stdout, Stderr: outcome.Stderr + unsaid(exit, outcome.Stderr),
		Files: outputsOf(outcome.Files, prefix), leftovers: leftoversOf(outcome),
		Signal: orNull(exit.Signal), Message: orNull(exit.Message), Status: orNull(exit.Status),
		WallTime: outcome.Ran.Milliseconds(), verdict: verdictOf(outcome),
	}
	answer.Reason, answer.Detail = api.WhyOf(outcome)
	if exit.Signal == "" {
		answer.Code = &exit.Code
	}
	return answer, nil
}

// unsaid returns what is added to the stderr of a program that could not tell how it ended.
func unsaid(exit api.Exit, stderr string) string {
	if !exit.Unsaid {
		return ""
	}
	added := "[sandbox] " + exit.Message + "\n"
	if stderr != "" && !strings.HasSuffix(stderr, "\n") {
		return "\n" + added
	}
	return added
}

// encodeExit returns status and body for the end of a program without tools.
func encodeExit(outcome core.Outcome, prefix string) (status int, body []byte, err error) {
	answer, err := plainAnswerOf(outcome, prefix)
	if err != nil {
		return 0, nil, err
	}
	body, err = api.Encode(answer)
	return http.StatusOK, body, err
}

// orNull returns nil for an empty text.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
