// Package v1test runs the service with both versions of its interface, for tests of what calls them from outside.
package v1test

import (
	"testing"

	"partnerapi/idmap"
	"partnerapi/idmap/idmaptest"
	"partnerapi/v1compat"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// Service is a running service.
type Service struct {
	*v2test.Harness
	Registry *idmap.Registry
	Facade   *v1compat.Facade
}

// Start starts a service, which ends with the test. It has no limits on requests unless the options have them.
func Start(t testing.TB, o v2test.Options) *Service {
	t.Helper()
	s := &Service{}
	if o.Schema.Name == "" {
		o.Schema = idmaptest.Schema
	}
	if o.Limits.PerKey == 0 {
		o.Limits = v2test.Unlimited
	}
	o.Mount = func(h *v2test.Harness) error {
		s.Registry = idmap.New(h.DB.DB, 10_000)
		s.Facade = v1compat.New(h.API, v1compat.Config{Registry: s.Registry, Clock: h.Clock, Release: op.Latest})
		return s.Facade.Mount(h.Edge, h.Engine)
	}
	s.Harness = v2test.New(t, o)
	return s
}

// NumberIn returns v1's number of an object.
func (s *Service) NumberIn(kind idmap.Kind, id idmap.UUID) int64 {
	s.T.Helper()
	key := idmap.IDKey{Kind: kind, ID: id}
	found, err := s.Registry.Numbers(s.T.Context(), []idmap.IDKey{key})
	if err != nil || found[key] == 0 {
		s.T.Fatalf("the number of %s %x: %v", kind, id, err)
	}
	return found[key]
}
