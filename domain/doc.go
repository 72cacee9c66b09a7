// Package domain has the types and rules of the service: of partners, clients, users, their training and phishing
// simulations, and the other objects. It does no I/O and imports only the standard library, so that every other package
// can use it.
package domain
