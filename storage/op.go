package storage

// Kind is the kind of an [Op].
type Kind int

// The kinds of operations.
const (
	// KindPut writes a value under a key.
	KindPut Kind = iota + 1
	// KindDelete removes a key.
	KindDelete
	// KindCheck writes nothing.
	KindCheck
	// KindAppend adds records to a log.
	KindAppend
)

// Op is one operation of a [Store.Write], made by [Put], [Delete], [Check] or [Append].
type Op struct {
	Kind Kind

	// Key, Rev and Value belong to the operations on keys. Only a put has a Value.
	Key   string
	Rev   Revision
	Value []byte

	// Log, After and Records belong to an append.
	Log     string
	After   Position
	Records []Record
}

// Put returns the operation of [KV.Put].
func Put(key string, value []byte, rev Revision) Op {
	return Op{Kind: KindPut, Key: key, Value: value, Rev: rev}
}

// Delete returns the operation of [KV.Delete].
func Delete(key string, rev Revision) Op {
	return Op{Kind: KindDelete, Key: key, Rev: rev}
}

// Check returns an operation that writes nothing and is a conflict unless rev is the current revision of
// the key ([Absent]: the key must not exist).
func Check(key string, rev Revision) Op {
	return Op{Kind: KindCheck, Key: key, Rev: rev}
}

// Append returns the operation of [Log.Append].
func Append(log string, after Position, records ...Record) Op {
	return Op{Kind: KindAppend, Log: log, After: after, Records: records}
}
