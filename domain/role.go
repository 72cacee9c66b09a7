package domain

import (
	"strings"
	"unicode"
)

// Role says how exposed a user's work is. It sets where the user's risk score
// starts and how heavily bad signals weigh (decisions 6).
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

// place is the field of a user that a text comes from; some words count in some
// places only.
type place uint8

const (
	inTitle place = 1 << iota
	inDepartment
	inEmail

	anywhere = inTitle | inDepartment | inEmail
)

// roleRule gives a role to a text that has one of the phrases, or that has the
// word beside one of the phrases, or that is nothing but one of the phrases.
type roleRule struct {
	role    Role
	where   place
	whole   bool   // the phrase must be all of the text
	word    string // what must be there too, unless empty
	phrases []string
}

// roleRules holds the words of decisions 6. The first rule that applies wins,
// so the order of the rules is the order of the roles.
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

// chiefs are the short titles of the c-level.
var chiefs = []string{"ceo", "cfo", "cto", "coo", "cio", "ciso"}

// ClassifyRole returns the role that the first of a user's job title, department and
// email indicates, in that order. Of the email only the part before the @ counts.
// Without a match the role is standard.
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

// roleIn returns the role that one text indicates.
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

func (r roleRule) applies(text words) bool {
	if r.word != "" && !text.has(r.word) {
		return false
	}
	for _, phrase := range r.phrases {
		if text.has(phrase) && (!r.whole || len(text) == len(phrase)+2) {
			return true
		}
	}
	return false
}

// words is a text as lower-case words, each with a space before and after it,
// so that a phrase is found as whole words by looking for it between spaces.
type words string

// wordsOf returns the words of a text. Every character but letters separates words;
// a combining accent belongs to its letter.
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

// has reports whether the phrase, lower-case words with single spaces between
// them, is part of the text.
func (w words) has(phrase string) bool {
	return strings.Contains(string(w), " "+phrase+" ")
}

// isChief reports whether the text names a c-level title.
func (w words) isChief() bool {
	for _, chief := range chiefs {
		if w.has(chief) {
			return true
		}
	}
	_, after, found := strings.Cut(string(w), " chief ")
	return found && words(" "+after).has("officer")
}
