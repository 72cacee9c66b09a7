package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/extension"
	"partnerapi/platform/site"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/op/openapi"
)

// documentV2 is the OpenAPI document of a release of v2.
func documentV2(api *v2.API, release op.Release) (*openapi3.T, error) {
	return openapi.ForSet(&api.Set, release, reflect.TypeFor[ginop.ErrorEnvelope](), ginop.StatusOf)
}

// openDocuments serves the document of a release; it needs no key. Its server has the
// address that the caller knows the service by.
func openDocuments(s *ginop.Surface, api *v2.API, release op.Release, documents *site.Documents) error {
	document, err := documentV2(api, release)
	if err != nil {
		return err
	}
	document.Servers[0].URL = site.SampleBase + document.Servers[0].URL
	asYAML, err := openapi.YAML(document)
	if err != nil {
		return err
	}
	asJSON, err := openapi.JSON(document)
	if err != nil {
		return err
	}
	s.Open("/openapi.yaml", documents.Handler("application/yaml", asYAML))
	s.Open("/openapi.json", documents.Handler("application/json", asJSON))
	return nil
}

type openapiCmd struct {
	Which   string     `arg:"" help:"The version of the interface: v1 or v2."`
	Release op.Release `default:"latest" env:"-" help:"The release of v2."`
	JSON    bool       `env:"-" help:"Print JSON instead of YAML (v2 only)."`
}

// Validate refuses a document that there is not.
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
		return fmt.Errorf("there is no document %q: use %s", c.Which, strings.Join(names, " or "))
	case c.JSON:
		return fmt.Errorf("--json is for v2 only")
	}
	return nil
}

// Run prints a document. It needs no database: the documents come from the
// operations' types.
func (c openapiCmd) Run(s cli.Env) error {
	api := v2.New(nil, nil)
	document, err := c.document(api)
	if err != nil {
		return err
	}
	_, err = s.Out.Write(document)
	return err
}

func (c openapiCmd) document(api *v2.API) ([]byte, error) {
	if i := slices.IndexFunc(extensions, func(e extension.Extension) bool { return e.Name == c.Which }); i >= 0 {
		return extensions[i].Document(api)
	}
	document, err := documentV2(api, c.Release)
	if err != nil {
		return nil, err
	}
	if c.JSON {
		return openapi.JSON(document)
	}
	return openapi.YAML(document)
}
