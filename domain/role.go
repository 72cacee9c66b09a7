package domain

import (
	"slices"
	"strings"
	"unicode"
)

// Role is the kind of a user's work. It determines the baseline of the user's risk score, and the weight of bad signals
// (decisions 6).
type Role string

// The roles of users.
const (
	RoleAdmin     Role = "admin"
	RoleExecutive Role = "executive"
	RoleHR        Role = "hr"
	RoleFinance   Role = "finance"
	RoleStandard  Role = "standard"
)

// Values lists the roles.
func (Role) Values() []string {
	return texts(RoleAdmin, RoleExecutive, RoleHR, RoleFinance, RoleStandard)
}

// place is a set of fields of a user: some words count in some fields only.
type place uint8

const (
	inTitle place = 1 << iota
	inDepartment
	inEmail

	anywhere = inTitle | inDepartment | inEmail
)

// roleRule gives a role to a text that contains one of the phrases and, if word is not empty, the word too. If whole is
// true, the phrase must be the whole text.
type roleRule struct {
	role    Role
	where   place
	whole   bool
	word    string
	phrases []string
}

// roleRules holds the rules of decisions 6. The first rule that applies to a text determines its role.
var roleRules = []roleRule{
	{role: RoleFinance, where: anywhere, phrases: []string{
		"finance", "financial", "accounting", "accountant", "accounts payable", "accounts receivable",
		"payroll", "controller", "bookkeeper", "treasury", "treasurer", "billing",
	}},
	{role: RoleHR, where: anywhere, phrases: []string{"hr", "human resources", "talent", "recruiter", "recruiting"}},
	{role: RoleHR, where: inTitle | inDepartment, phrases: []string{"people"}},
	{role: RoleExecutive, where: anywhere, phrases: []string{
		"president", "vp", "vice president", "director", "founder",
		"managing partner", "general partner", "senior partner", "business owner",
	}},
	{role: RoleExecutive, where: inTitle, whole: true, phrases: []string{"partner", "owner"}},
	{role: RoleAdmin, where: anywhere, phrases: []string{"sysadmin", "infrastructure", "devops", "helpdesk", "help desk"}},
	{role: RoleAdmin, where: anywhere, word: "administrator",
		phrases: []string{"system", "systems", "network", "database"}},
	{role: RoleAdmin, where: anywhere, word: "security", phrases: []string{"information", "cyber", "network"}},
	{role: RoleAdmin, where: inDepartment, whole: true, phrases: []string{"security"}},
	{role: RoleAdmin, where: inTitle | inDepartment, phrases: []string{"it"}},
}

// chiefs are the abbreviated titles of chief officers.
var chiefs = []string{"ceo", "cfo", "cto", "coo", "cio", "ciso"}

// ClassifyRole returns the role that a user's job title indicates, otherwise the department, otherwise the part of the
// email before the last @; RoleStandard if none does.
func ClassifyRole(jobTitle, department, email string) Role {
	local := email
	if at := strings.LastIndexByte(email, '@'); at >= 0 {
		local = email[:at]
	}
	if role, found := roleIn(wordsOf(jobTitle), inTitle); found {
		return role
	}
	if role, found := roleIn(wordsOf(department), inDepartment); found {
		return role
	}
	if role, found := roleIn(wordsOf(local), inEmail); found {
		return role
	}
	return RoleStandard
}

// roleIn returns the role that the text of the field where indicates: RoleExecutive for a chief officer, otherwise the
// role of the first rule that is for this field and applies. found is false if there is none.
func roleIn(text words, where place) (role Role, found bool) {
	if text.isChief() {
		return RoleExecutive, true
	}
	for _, rule := range roleRules {
		if rule.where&where != 0 && rule.applies(text) {
			return rule.role, true
		}
	}
	return "", false
}

// applies reports whether the text contains one of the rule's phrases (equals one if whole is true), and the rule's
// word if there is one.
func (r roleRule) applies(text words) bool {
	if r.word != "" && !text.has(r.word) {
		return false
	}
	return slices.ContainsFunc(r.phrases, func(phrase string) bool {
		return text.has(phrase) && (!r.whole || string(text) == " "+phrase+" ")
	})
}

// words is a text as lower-case words with single spaces before, between and after them, so that a phrase between two
// spaces matches whole words only.
type words string

// wordsOf returns the words of a text in lower case, with a space before, between and after them. A word is a run of
// letters, with the combining marks that follow them. Every other character separates words.
func wordsOf(text string) words {
	var b strings.Builder
	b.Grow(len(text) + 2)
	b.WriteByte(' ')
	inWord := false
	for _, r := range text {
		switch {
		case unicode.IsLetter(r), inWord && unicode.IsMark(r):
			b.WriteRune(unicode.ToLower(r))
			inWord = true
		case inWord:
			b.WriteByte(' ')
			inWord = false
		}
	}
	if inWord {
		b.WriteByte(' ')
	}
	return words(b.String())
}

// has reports whether the text contains the phrase: lower-case words with single spaces between them.
func (w words) has(phrase string) bool { return strings.Contains(string(w), " "+phrase+" ") }

// isChief reports whether the text contains one of chiefs, or "chief" with a later "officer".
func (w words) isChief() bool {
	if slices.ContainsFunc(chiefs, w.has) {
		return true
	}
	_, after, found := strings.Cut(string(w), " chief ")
	return found && words(" "+after).has("officer")
}
