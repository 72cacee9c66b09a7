package idmap

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"partnerapi/domain"
)

// Resolve sets the ID of every Ref in the inputs from its Number, with at most one statement for all. Inputs are
// pointers; Resolve walks structs, pointers, slices and arrays, but no interfaces. It does not change Refs without a
// Number. The ID of an unused number is zero: the operation that gets it does not find the object.
//
// If the operation then succeeds, the caller may access all objects of the Lookup (Lookup.Cache). The Lookup is without
// objects of Refs in slices and arrays: operations may skip those that the caller may not access.
func Resolve(ctx context.Context, reg *Registry, inputs ...any) (Lookup, error) {
	slots, err := collect(inputs)
	if err != nil {
		return Lookup{}, fmt.Errorf("resolve numbers: %w", err)
	}

	listed := make(map[NumberKey]bool)
	for _, s := range slots {
		if s.listed {
			listed[NumberKey{s.kind, *s.number}] = true
		}
	}
	var lookup Lookup
	err = resolve(slots, func(wanted []NumberKey) (found map[NumberKey]UUID, err error) {
		found, lookup, err = reg.IDs(ctx, wanted)
		return found, err
	})
	lookup.pairs = slices.DeleteFunc(lookup.pairs, func(p pair) bool { return listed[NumberKey{p.kind, p.number}] })
	return lookup, err
}

// ResolveBy sets the ID of every Ref in the inputs, which are pointers, from its Number. It calls find at most once;
// the ID of a number that is not in the result is zero.
func ResolveBy(find func([]NumberKey) (map[NumberKey]UUID, error), inputs ...any) error {
	slots, err := collect(inputs)
	if err != nil {
		return fmt.Errorf("resolve numbers: %w", err)
	}
	return resolve(slots, find)
}

// resolve sets the ids of the slots that have a number. It does not call find if none has.
func resolve(slots []slot, find func([]NumberKey) (map[NumberKey]UUID, error)) error {
	var wanted []NumberKey
	for _, s := range slots {
		if *s.number != 0 {
			wanted = append(wanted, NumberKey{s.kind, *s.number})
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	found, err := find(wanted)
	if err != nil {
		return err
	}
	for _, s := range slots {
		if *s.number != 0 {
			*s.id = found[NumberKey{s.kind, *s.number}]
		}
	}
	return nil
}

// ResolvedIDs returns the ids of the Refs that have a Number, in values whose ids Resolve has set: an id is zero if its
// number is unused.
func ResolvedIDs(values ...any) ([]IDKey, error) {
	slots, err := collect(values)
	if err != nil {
		return nil, fmt.Errorf("collect ids: %w", err)
	}
	var ids []IDKey
	for _, s := range slots {
		if *s.number != 0 {
			ids = append(ids, IDKey{s.kind, *s.id})
		}
	}
	return ids, nil
}

// Number sets the Number of every Ref in the value from its ID, with at most one statement. It walks structs, pointers,
// slices and arrays, but no interfaces, and does not change Refs without an ID. An object that never had a number is an
// error: the registry's triggers give every object a number.
func Number(ctx context.Context, reg *Registry, out any) error {
	return NumberBy(func(wanted []IDKey) (map[IDKey]int64, error) { return reg.Numbers(ctx, wanted) }, out)
}

// NumberBy sets the Number of every Ref in the values that has an ID. It calls find at most once; an id that is not in
// the result is an error.
func NumberBy(find func([]IDKey) (map[IDKey]int64, error), values ...any) error {
	slots, err := collect(values)
	if err != nil {
		return fmt.Errorf("number ids: %w", err)
	}

	var wanted []IDKey
	for _, s := range slots {
		if *s.id != (UUID{}) {
			wanted = append(wanted, IDKey{s.kind, *s.id})
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	found, err := find(wanted)
	if err != nil {
		return err
	}

	for _, s := range slots {
		if *s.id == (UUID{}) {
			continue
		}
		number, ok := found[IDKey{s.kind, *s.id}]
		if !ok {
			return fmt.Errorf("number ids: %s has no number", IDKey{s.kind, *s.id})
		}
		*s.number = number
	}
	return nil
}

// collect returns the slots of all Refs in the values.
func collect(values []any) ([]slot, error) {
	var slots []slot
	for _, value := range values {
		if value == nil {
			continue
		}
		if err := walk(reflect.ValueOf(value), &slots); err != nil {
			return nil, fmt.Errorf("walk %T: %w", value, err)
		}
	}
	return slots, nil
}

// walk appends the slots of the Refs in v; below a slice or an array they are listed. It returns an error for a Ref
// that cannot be set (v was not reached through a pointer, or it is in a map), and for a Ref of a kind without numbers.
func walk(v reflect.Value, slots *[]slot) error {
	if isRef(v.Type()) {
		if !v.CanAddr() {
			return fmt.Errorf("a %s cannot be set; pass a pointer", v.Type())
		}
		found := v.Addr().Interface().(referrer).slot()
		if found.kind == 0 {
			return fmt.Errorf("%s: the registry has no numbers of this kind", v.Type())
		}
		*slots = append(*slots, found)
		return nil
	}

	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return walk(v.Elem(), slots)
	case reflect.Slice, reflect.Array:
		first := len(*slots)
		for i := range v.Len() {
			if err := walk(v.Index(i), slots); err != nil {
				return err
			}
		}
		for i := range (*slots)[first:] {
			(*slots)[first+i].listed = true
		}
	case reflect.Struct:
		for _, i := range fieldsOf(v.Type()) {
			if err := walk(v.Field(i), slots); err != nil {
				return err
			}
		}
	case reflect.Map:
		return fmt.Errorf("%s: values in a map cannot be set", v.Type())
	}
	return nil
}

// fields caches the results of fieldsOf.
var fields sync.Map

// fieldsOf returns the indexes of the fields of the struct type t that can contain Refs.
func fieldsOf(t reflect.Type) (indexes []int) {
	if known, ok := fields.Load(t); ok {
		return known.([]int)
	}
	for i := range t.NumField() {
		if field := t.Field(i); settable(field) && containsRef(field.Type, make(map[reflect.Type]bool)) {
			indexes = append(indexes, i)
		}
	}
	fields.Store(t, indexes)
	return indexes
}

// containsRef reports whether values of type t can contain Refs. seen holds the types that were looked at before.
func containsRef(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	if isRef(t) {
		return true
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map: // a map with Refs is an error of walk
		return containsRef(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if settable(t.Field(i)) && containsRef(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

var (
	referrerType = reflect.TypeFor[referrer]()
	thisPackage  = reflect.TypeFor[Ref[domain.ClientKind]]().PkgPath()
)

// isRef reports whether t is a Ref or a TextRef. A struct that embeds a Ref has its methods, but is of another package.
func isRef(t reflect.Type) bool {
	return t.PkgPath() == thisPackage && reflect.PointerTo(t).Implements(referrerType)
}

// settable reports whether decoders of other packages can set a field, or fields of the struct that it embeds.
func settable(field reflect.StructField) bool { return field.IsExported() || field.Anonymous }
