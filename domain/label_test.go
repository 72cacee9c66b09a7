package domain_test

import (
	"testing"

	"partnerapi/domain"
)

// TestLabels: the first values are labels of their own, and stay so; the rest is one.
func TestLabels(t *testing.T) {
	t.Parallel()
	l := domain.NewLabels(2)
	for _, step := range []struct{ value, want string }{
		{"a", "a"}, {"b", "b"}, {"c", domain.OtherLabel}, {"a", "a"}, {"d", domain.OtherLabel}, {"b", "b"},
	} {
		if got := l.Of(step.value); got != step.want {
			t.Errorf("%s is labeled %s", step.value, got)
		}
	}
}
