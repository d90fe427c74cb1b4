// Package core is what an execution is, without the world: which states it and its calls have, what may follow each of
// them, and what follows from what a program, a client or a store has done. It has no I/O, no goroutine, no lock and no
// clock: package engine asks it, and does what it says.
//
// Everything that can happen to a pending call is in four files: its states in call.go, what the program's next stop
// leads to in plan.go, what a client's continuation leads to in settlement.go, and what each of these leaves in the
// record in change.go.
package core
