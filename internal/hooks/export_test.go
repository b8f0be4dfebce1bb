package hooks

// Verify is verify, for examples of the senders' own.
var Verify = verify
