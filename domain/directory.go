package domain

// DirectoryAccount is an account of a client's directory, as far as a sync wants
// to know it. In a delta a property may be absent, which leaves it as it is.
type DirectoryAccount struct {
	// ObjectID is the directory's own id of the account.
	ObjectID string
	// Removed says that the account was deleted, or left the group that is synced.
	Removed bool
	// Guest accounts are skipped.
	Guest   Property[bool]
	Enabled Property[bool]
	Email   Property[string] // in any case; empty where there is no mail
	First   Property[string]
	Last    Property[string]
	// The empty text of the following stands for none.
	Department   Property[string]
	JobTitle     Property[string]
	ManagerEmail Property[string]
	Language     Property[Language]
	// Group is the name of the directory's group or organizational unit; empty for
	// the default one.
	Group Property[string]
}

// Property is a property that a directory may leave out.
type Property[T any] struct {
	Given bool
	Value T
}

// Known is a property that is given.
func Known[T any](v T) Property[T] { return Property[T]{Given: true, Value: v} }
