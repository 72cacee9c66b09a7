package v1compat

import (
	"context"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// addOwn adds an additive route: one that is not in v1's own document, for callers
// who move to v2 (decisions 11.4, 11.5). Its operation, v1.ID, is a read that only
// v1 has; tag is the resource that documents list it under. What else is true of
// routes is true of it.
func addOwn[In, Out any](f *Facade, meta Meta, tag string, run func(context.Context, *In) (*Out, error)) {
	meta.Additive = true
	o := op.Add(f.own, op.Meta{
		ID: "v1." + meta.ID, Tag: tag, Method: meta.Method, Path: meta.Path, Scope: domain.Read, Since: op.V2_0,
		Status: meta.Status, Summary: meta.Summary,
	}, run)
	call(f, meta, o, itself[In], itself[Out])
}

// itself translates nothing: input and output are v1's.
func itself[T any](v *T) *T { return v }
