package openapi_test

import (
	"testing"

	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/op/openapi/openapitest"
)

// TestDescribed holds every release to its descriptions and examples.
func TestDescribed(t *testing.T) {
	for release := op.V2_0; release <= op.Latest; release++ {
		openapitest.CheckDescribed(t, v2Document(t, release))
	}
	schemas := v2Document(t, op.Latest).Components.Schemas
	for name, about := range api.Objects {
		if schemas[name] == nil || schemas[name].Value.Description != about {
			t.Errorf("the document does not say what %s is", name)
		}
	}
}
