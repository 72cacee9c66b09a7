package operator

import (
	"strings"
	"testing"

	"partnerapi/domain"
)

func TestReadBreaches(t *testing.T) {
	t.Parallel()
	file, err := readBreaches([]byte(`[
		{"Name": "Forum", "Title": "A forum", "Domain": "forum.example", "BreachDate": "2024-05-06", "DataClasses": ["Names", "Passwords"], "PwnCount": 3},
		{"Name": "Made", "Title": "Made up", "DataClasses": ["Names"], "IsFabricated": true},
		{"Name": "Gone", "Title": "Gone", "DataClasses": ["Names"], "IsRetired": true},
		{"Name": "Spam", "Title": "Spam", "Domain": "", "BreachDate": "", "DataClasses": ["Physical addresses"], "IsSpamList": true},
		{"Name": "Clinic", "Title": "Clinic", "DataClasses": ["Names"], "IsSensitive": true},
		{"Name": "Forum", "Title": "Again", "DataClasses": ["Names"]},
		{"Name": "Late", "Title": "Late", "BreachDate": "2024-02-30", "DataClasses": ["Names"]},
		{"Name": "Empty", "Title": "Empty"},
		{"Name": "", "Title": "Nameless", "DataClasses": ["Names"]},
		{"Name": "Zero", "Title": "a\u0000b", "DataClasses": ["Names"]},
		{"Name": 7},
		"text"
	]`))
	if err != nil {
		t.Fatal(err)
	}
	if file.fabricated != 1 || file.retired != 1 || len(file.breaches) != 3 {
		t.Fatalf("read %+v", file)
	}
	forum, spam, clinic := file.breaches[0], file.breaches[1], file.breaches[2]
	if forum.Severity != domain.SeverityCritical || *forum.Domain != "forum.example" || forum.On.String() != "2024-05-06" {
		t.Errorf("read %+v", forum)
	}
	if spam.Severity != domain.SeverityLow || spam.Domain != nil || spam.On != nil || !spam.SpamList {
		t.Errorf("read %+v", spam)
	}
	if clinic.Severity != domain.SeverityHigh || !clinic.Sensitive {
		t.Errorf("read %+v", clinic)
	}
	want := []string{"entry 6 (\"Forum\"): has the name of entry 1", "entry 7 (\"Late\"): BreachDate", "entry 8 (\"Empty\"): needs DataClasses",
		"entry 9 (\"\"): needs a Name", "entry 10 (\"Zero\"): holds a NUL", "entry 11", "entry 12"}
	if len(file.faults) != len(want) {
		t.Fatalf("%d faults: %v", len(file.faults), file.faults)
	}
	for i, fault := range file.faults {
		if !strings.HasPrefix(fault.Error(), want[i]) {
			t.Errorf("%s, want %s", fault, want[i])
		}
	}
	if _, err := readBreaches([]byte(`{"Name": "Forum"}`)); err == nil {
		t.Error("an object was read as a list")
	}
}

// TestBreachBounds: what is longer than a signal may name is refused before it is
// rated.
func TestBreachBounds(t *testing.T) {
	long := strings.Repeat("я", 256)
	file, err := readBreaches([]byte(`[
		{"Name": "` + long + `", "Title": "Long", "DataClasses": ["Names"]},
		{"Name": "Class", "Title": "Class", "DataClasses": ["` + long + `"]},
		{"Name": "Many", "Title": "Many", "DataClasses": ["Names"` + strings.Repeat(`, "Names"`, 100) + `]},
		{"Name": "` + long[2:] + `", "Title": "Fits", "DataClasses": ["Names"` + strings.Repeat(`, "Names"`, 99) + `]}
	]`))
	if err != nil {
		t.Fatal(err)
	}
	if len(file.breaches) != 1 || file.breaches[0].Title != "Fits" || len(file.faults) != 3 {
		t.Errorf("read %d breaches: %v", len(file.breaches), file.faults)
	}
}
