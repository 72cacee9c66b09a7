package op

import (
	"context"
	"fmt"
	"slices"

	"partnerapi/domain/rule"
)

// Release is a release of v2. It has every operation, field and parameter of the lower releases. What a field or a
// parameter belongs to is declared by its tag since, such as since:"2.4", which names the first release that has it
// (decisions 3.5).
type Release int

// The releases, lowest first. The zero Release is none.
const (
	V2_0 Release = iota + 1
	V2_1
	V2_2
	V2_3
	V2_4
	V2_5
)

// Includes reports whether the release has a field or a parameter whose tag since is since; without the tag, all have it.
// The zero Release has all. It panics if since is not empty and names no release.
func (r Release) Includes(since string) bool {
	if r == 0 || since == "" {
		return true
	}
	first, err := ParseRelease(since)
	if err != nil {
		panic(fmt.Sprintf("tag since: %v", err))
	}
	return first <= r
}

// Latest is the highest release.
const Latest = V2_5

// BodySignatureSince is the first release whose deliveries have domain.BodySignatureHeader (decisions 4.2).
const BodySignatureSince = V2_5

var releaseNames = map[Release]string{V2_0: "2.0", V2_1: "2.1", V2_2: "2.2", V2_3: "2.3", V2_4: "2.4", V2_5: "2.5"}

// String returns the release as it is written: 2.0.
func (r Release) String() string { return releaseNames[r] }

// ParseRelease reads 2.0 to 2.5, or latest.
func ParseRelease(text string) (Release, error) {
	if text == "latest" {
		return Latest, nil
	}
	for r, name := range releaseNames {
		if name == text {
			return r, nil
		}
	}
	return 0, fmt.Errorf("release %q is unknown: use 2.0, 2.1, 2.2, 2.3, 2.4, 2.5 or latest", text)
}

// Values returns the releases as they are written, lowest first.
func (Release) Values() []string {
	var names []string
	for r := V2_0; r <= Latest; r++ {
		names = append(names, r.String())
	}
	return names
}

// EnumValues returns the values of an enum of an input that the release accepts. If a later release added values, the
// enum has a method Since, which returns the first release that accepts a value, as the tag since does.
func (r Release) EnumValues(enum rule.Enum) []string {
	values := enum.Values()
	if staged, ok := enum.(interface{ Since(value string) string }); ok {
		values = slices.DeleteFunc(values, func(value string) bool { return !r.Includes(staged.Since(value)) })
	}
	return values
}

type releaseKey struct{}

// In returns a context for calls of callers who are shown the release.
func (r Release) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, releaseKey{}, r)
}

// shows reports whether callers are shown what has the tag since. Callers in this process, who name no release, are not.
func shows(ctx context.Context, since string) bool {
	r, _ := ctx.Value(releaseKey{}).(Release)
	return r != 0 && r.Includes(since)
}

// UnmarshalText reads a release, for flags.
func (r *Release) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRelease(string(text))
	return err
}
