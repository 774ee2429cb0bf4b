// The program, where `--import` names something: Node loads that before a file that it can read, and this is one.
require('node:module').Module._load(process.argv[1], null, true)
