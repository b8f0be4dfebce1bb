// Package house keeps the rules of this code base as tests: who may import whom,
// what has to be documented, and what stays out. It holds no code for the program.
//
// Each rule is a function from the parsed module to its findings, and each finding
// says where and what to do. A rule that a linter already knows is here only where
// its bound is a promise that must not depend on the linter. Every rule is shown to
// find its fault by the examples in testdata.
package house
