package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// guide is a text for people that agents may read too.
type guide struct {
	name, title, text string
}

const (
	guideScheme  = "partner://guides/"
	clientScheme = "partner://clients/"
)

// addGuides loads the guides of GuideNames.
func (s *Server) addGuides() error {
	for _, name := range s.GuideNames {
		text, err := s.Guide(name)
		if err != nil {
			return fmt.Errorf("guide %s: %w", name, err)
		}
		s.guides = append(s.guides, guide{name, titleOf(name, string(text)), string(text)})
	}
	return nil
}

// titleOf returns the first heading of level 1 in a guide's text; its name if there is none.
func titleOf(name, text string) string {
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(line, "# "); ok {
			return strings.TrimSpace(title)
		}
	}
	return name
}

// addResources adds the guides, and clients by id if the rights allow to read them. Reading a guide, which runs no
// operation, is counted against the key's budget.
func (s *Server) addResources(server *sdk.Server, r rights) {
	for _, g := range s.guides {
		server.AddResource(&sdk.Resource{
			URI: guideScheme + g.name, Name: g.name, Title: g.title, MIMEType: "text/markdown", Size: int64(len(g.text)),
		}, func(ctx context.Context, request *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			m := messageOf(ctx)
			if err := s.Count(m.request.Context()); err != nil {
				return nil, resourceError(s.Envelope(m.request, err, m.id))
			}
			return contents(request.Params.URI, "text/markdown", g.text), nil
		})
	}
	if t := s.byName["clients_get"]; t != nil && r.allow(t.operation.Meta()) {
		server.AddResourceTemplate(&sdk.ResourceTemplate{
			URITemplate: clientScheme + "{id}", Name: "client", Title: "A client",
			Description: "A client, as returned by the tool clients_get.", MIMEType: "application/json",
		}, s.readClient)
	}
}

// readClient reads a client through the operation of its tool.
func (s *Server) readClient(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	answer, err := s.invoke(ctx, s.byName["clients_get"], &callParts{
		path:  map[string]string{"client_id": strings.TrimPrefix(r.Params.URI, clientScheme)},
		given: map[string]bool{"client_id": true},
	})
	if err != nil {
		return nil, err
	}
	if answer.status != http.StatusOK {
		return nil, resourceError(answer.status, answer.body.Bytes())
	}
	return contents(r.Params.URI, "application/json", answer.body.String()), nil
}

// contents returns a resource that consists of one text. kind is its media type.
func contents(uri, kind, text string) *sdk.ReadResourceResult {
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: kind, Text: text}}}
}

// codeResourceNotFound is the code for a missing resource in all protocol versions but the newest, which uses
// jsonrpc.CodeInvalidParams.
const codeResourceNotFound = -32002

// serverError is the first code that JSON-RPC reserves for servers.
const serverError = -32000

// resourceError returns the error of a resource that cannot be read; its data is the service's error envelope.
func resourceError(status int, envelope []byte) error {
	code := int64(serverError)
	switch status {
	case http.StatusNotFound:
		code = codeResourceNotFound
	case http.StatusBadRequest:
		code = jsonrpc.CodeInvalidParams
	case http.StatusInternalServerError:
		code = jsonrpc.CodeInternalError
	}
	var body struct {
		Error struct{ Message string }
	}
	_ = json.Unmarshal(envelope, &body) // never fails: the service encoded it
	return &jsonrpc.Error{Code: code, Message: body.Error.Message, Data: json.RawMessage(envelope)}
}

// adaptResourceError sets the code of the error for a missing resource to that of the message's protocol version: this
// package uses the older code, the SDK the newer one. It returns other errors, and nil, unchanged.
func adaptResourceError(m *message, err error) error {
	e, isCoded := errors.AsType[*jsonrpc.Error](err)
	unknown, _ := errors.AsType[*jsonrpc.Error](sdk.ResourceNotFoundError(""))
	if !isCoded || e.Code != codeResourceNotFound && e.Message != unknown.Message {
		return err
	}
	code := int64(codeResourceNotFound)
	if m.usesNewestVersion() {
		code = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{Code: code, Message: e.Message, Data: e.Data}
}
