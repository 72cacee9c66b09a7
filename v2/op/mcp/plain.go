package mcp

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// incoming is a message as far as it has to be known before the SDK reads it.
type incoming struct {
	JSONRPC string         `json:"jsonrpc"`
	ID      jsontext.Value `json:"id"`
	Method  string         `json:"method"`
	Params  jsontext.Value `json:"params"`
	Others  jsontext.Value `json:",inline"`
}

// read reads a message; the zero incoming stands for one that is not well-formed.
func read(body []byte) incoming {
	var m incoming
	if json.Unmarshal(body, &m, jsontext.AllowDuplicateNames(true)) != nil {
		return incoming{}
	}
	return m
}

// plainCall is a call of a tool that says no more than which, and with what.
type plainCall struct {
	Name      string                    `json:"name"`
	Arguments jsontext.Value            `json:"arguments"`
	Meta      map[string]jsontext.Value `json:"_meta"`
	Others    jsontext.Value            `json:",inline"`
}

// sdkVersion is the first version of the protocol whose calls the SDK reads: they
// carry more than plain ones.
const sdkVersion = "2026-07-28"

// plainVersions are those of the protocol whose calls are plain; empty is for a
// client that does not say.
func plainVersions() map[string]bool {
	versions := map[string]bool{"": true}
	for _, version := range sdk.SupportedProtocolVersions() {
		versions[version] = version < sdkVersion
	}
	return versions
}

// plain returns the tool and the arguments of a plain call. The SDK, which opens
// a session for each message and reads it ten times over, takes longer with a
// call than most operations; so plain ones are answered without it. Whatever is
// not as it has to be is left to the SDK to refuse: t is nil then.
func (s *Server) plain(r *http.Request, m incoming) (t *tool, arguments []byte) {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	switch {
	case m.Method != "tools/call" || m.JSONRPC != "2.0" || m.Others != nil || !isID(m.ID),
		r.Header.Get("Content-Type") != "application/json", r.Header.Get("Last-Event-ID") != "",
		!strings.Contains(accept, "application/json") || !strings.Contains(accept, "text/event-stream"),
		!s.versions[r.Header.Get("Mcp-Protocol-Version")]:
		return nil, nil
	}
	var call plainCall
	if json.Unmarshal(m.Params, &call, jsontext.AllowDuplicateNames(true)) != nil || call.Others != nil {
		return nil, nil
	}
	for name := range call.Meta {
		if strings.HasPrefix(name, "io.modelcontextprotocol/") {
			return nil, nil
		}
	}
	return s.byName[call.Name], call.Arguments
}

// isID reports whether a value is the id of a call: a text, or an integer.
func isID(id jsontext.Value) bool {
	switch id.Kind() {
	case '"':
		return true
	case '0':
		return len(id) < 19 && !slices.ContainsFunc(id, func(b byte) bool { return b < '0' || b > '9' })
	}
	return false
}

// answerPlain answers a plain call, in the form that the SDK gives results.
func (s *Server) answerPlain(ctx context.Context, t *tool, id jsontext.Value, arguments []byte) (*recorder, error) {
	answer, err := s.invoke(ctx, t, arguments)
	if err != nil {
		return nil, err
	}
	text, structured := answer.body.Bytes(), answer.body.Bytes()
	switch {
	case answer.status == http.StatusNoContent:
		text, structured = []byte(noAnswer), nil
	case answer.status >= http.StatusBadRequest:
		structured = nil
	}
	out := make([]byte, 0, len(text)*5/4+len(structured)+len(id)+128)
	out = append(append(append(out, `{"jsonrpc":"2.0","id":`...), id...), `,"result":{"content":[{"type":"text","text":`...)
	if out, err = jsontext.AppendQuote(out, text); err != nil {
		return nil, err
	}
	out = append(out, `}]`...)
	if structured != nil {
		out = append(append(out, `,"structuredContent":`...), structured...)
	}
	if answer.status >= http.StatusBadRequest {
		out = append(out, `,"isError":true`...)
	}
	return &recorder{
		header: http.Header{"Content-Type": {"application/json"}}, status: http.StatusOK,
		body: *bytes.NewBuffer(append(out, `}}`...)),
	}, nil
}
