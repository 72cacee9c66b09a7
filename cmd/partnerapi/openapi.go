package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/extension"
	"partnerapi/platform/site"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/op/openapi"
)

// documentV2 returns the OpenAPI document of a release of v2.
func documentV2(release op.Release) (*openapi3.T, error) {
	return openapi.ForRelease(api.Interface, release)
}

// openDocuments serves the OpenAPI document of a release, without a key. The server in it is the address that the caller
// used. On a demonstration, its example requests work: their ids exist there, and their dates follow today. Elsewhere the
// ids do not exist, and are replaced by placeholders.
func openDocuments(s *ginop.Surface, release op.Release, documents *site.Documents, demo bool) error {
	document, err := documentV2(release)
	if err != nil {
		return err
	}
	openapi.SetSupport(document, documents.SupportURL)
	document.Servers[0].URL = site.SampleBase + document.Servers[0].URL // the handler replaces SampleBase
	handler := documents.Handler
	if demo {
		handler = documents.DatedHandler
	} else {
		markPlaceholders(document)
	}
	s.Open("/openapi.yaml", handler("application/yaml", func() ([]byte, error) { return openapi.YAML(document) }))
	s.Open("/openapi.json", handler("application/json", func() ([]byte, error) { return openapi.JSON(document) }))
	return nil
}

// markPlaceholders replaces the examples of parameters that name an object, such as client_id by YOUR_CLIENT_ID, and of
// email addresses. Other parameters keep theirs.
func markPlaceholders(document *openapi3.T) {
	for _, item := range document.Paths.Map() {
		for _, operation := range item.Operations() {
			for _, p := range operation.Parameters {
				switch p := p.Value; {
				case p.Example == nil: // nothing to replace
				case p.Name == "email":
					p.Example = "name@example.com"
				case p.In == openapi3.ParameterInPath, strings.HasSuffix(p.Name, "_id"):
					p.Example = "YOUR_" + strings.ToUpper(p.Name)
				}
			}
		}
	}
}

type openapiCmd struct {
	Which   string     `arg:"" help:"API version: v1 or v2."`
	Release op.Release `default:"latest" env:"-" help:"Release of v2."`
	JSON    bool       `env:"-" help:"Print JSON instead of YAML (v2 only)."`
}

// Validate rejects an unknown document, and --json for the document of an extension.
func (c openapiCmd) Validate() error {
	i := slices.IndexFunc(extensions, func(e extension.Extension) bool { return e.Name == c.Which })
	switch {
	case c.Which == "v2":
		return nil
	case i < 0:
		names := []string{"v2"}
		for _, e := range extensions {
			names = append(names, e.Name)
		}
		return fmt.Errorf("there is no document %q; use %s", c.Which, strings.Join(names, " or "))
	case c.JSON:
		return fmt.Errorf("--json is for v2 only")
	}
	return nil
}

// Run prints a document. It needs no database: the documents come from the operations' types.
func (c openapiCmd) Run(s cli.Env) error {
	document, err := c.document()
	if err != nil {
		return err
	}
	_, err = s.Out.Write(document)
	return err
}

// document returns the document: that of an extension as YAML, that of v2 as YAML or JSON.
func (c openapiCmd) document() ([]byte, error) {
	if i := slices.IndexFunc(extensions, func(e extension.Extension) bool { return e.Name == c.Which }); i >= 0 {
		return extensions[i].Document()
	}
	document, err := documentV2(c.Release)
	if err != nil {
		return nil, err
	}
	markPlaceholders(document)
	if c.JSON {
		return openapi.JSON(document)
	}
	return openapi.YAML(document)
}
