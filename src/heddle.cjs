#!/usr/bin/env node
// The command `heddle`: finds what a command runs, and runs it. Plain JavaScript: the loader of the sources comes after it.
const { spawn } = require('node:child_process')
const { existsSync, readdirSync } = require('node:fs')
const { constants } = require('node:os')
const { join } = require('node:path')
const { endWithStarter } = require('./guardian/npm-parent.cjs')
const { nodeOptions } = require('./guardian/switch.cjs')
const { isCompiled, LOADER_ARGUMENTS, PRELOAD, sourceFile } = require('./preload/launch.cjs')

const ROOT = join(__dirname, isCompiled ? '../..' : '..')
/** Bad arguments. */
const EXIT_USAGE = 2

const TEST_USAGE = `Usage: heddle test [words] [--watch] [-t <name>]
  words      runs the test files whose path has one of them; all without
  --watch    runs them again when one of them, or a file that it loads, is saved
  -t <name>  runs the tests whose name has this text, or fits /this expression/`

/** What must not load TypeScript, or not in this process: given the rest of the command line. */
const COMMANDS = {
  start: (args) => start(args),
  dev: (args) => {
    process.env.NODE_OPTIONS = nodeOptions()
    process.env.HEDDLE_FOLLOWS_PARENT = 'true'
    const child = run([...LOADER_ARGUMENTS, sourceFile('main'), '--watch', ...args])
    // The child ends with this process, and this one with npm, which tells nobody when it is killed. Its terminal is the child's, too.
    const followsParent = process.env.npm_command !== undefined
    endWithStarter({ followsParent, onGone: () => child.kill('SIGTERM') })
  },
  test: (args) => test(args),
}

function asksForHelp(args) {
  return args.includes('--help') || args.includes('-h')
}

/** In this process: a supervisor has the guardian as its child, and no process between them. */
function start(args) {
  const guardian = join(__dirname, 'guardian.cjs')
  process.argv = [process.argv[0], guardian, ...args]
  require(guardian)
}

/** Runs Node and ends as it ends. Signals are passed on. */
function run(args) {
  const child = spawn(process.execPath, args, { stdio: 'inherit' })
  // A terminal sends SIGINT to the child, too.
  process.on('SIGINT', () => {})
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]))
  return child
}

/** The test files of the application, by Node's own runner. In the repository, its own runner. */
function test(args) {
  if (asksForHelp(args)) return console.log(TEST_USAGE)
  const runner = join(ROOT, 'test/run.ts')
  if (!isCompiled && process.cwd() === ROOT && existsSync(runner)) {
    return run(['--require', join(ROOT, 'test/support/typescript/register.cjs'), runner, ...args])
  }
  const { words, options } = testArguments(args)
  const files = ['test', 'domains'].filter(existsSync).flatMap((folder) =>
    readdirSync(folder, { recursive: true })
      .map((file) => join(folder, file))
      .filter((file) => /\.test\.(?:[cm]?[jt]s)$/.test(file) && !file.includes('node_modules')),
  )
  const chosen = files.filter((file) => words.length === 0 || words.some((word) => file.includes(word))).sort()
  if (chosen.length === 0)
    fail(files.length === 0 ? 'There are no tests in test/' : 'No test file has one of these words')
  // tsx takes a test with top-level `await`. Node's loader of ES modules, which it goes through, takes no path with one of these characters.
  const isPlain = !/[?\\]/.test(process.cwd())
  const tsx = isPlain ? ['--import', require('node:url').pathToFileURL(require.resolve('tsx')).href] : []
  // The same lines on every Node, on a terminal and in a log.
  return run([...LOADER_ARGUMENTS, ...tsx, '--test', '--test-reporter=spec', ...options, ...chosen])
}

/** Words, and Node's options for the rest. */
function testArguments(args) {
  const { parseArgs } = require('node:util')
  try {
    const options = { watch: { type: 'boolean' }, name: { type: 'string', short: 't', multiple: true } }
    const { values, positionals } = parseArgs({ args, allowPositionals: true, options })
    // Node takes a pattern.
    const patterns = (values.name ?? []).map((name) =>
      /^\/.*\/\w*$/.test(name) ? name : name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'),
    )
    return {
      words: positionals,
      options: [...(values.watch ? ['--watch'] : []), ...patterns.map((pattern) => `--test-name-pattern=${pattern}`)],
    }
  } catch (error) {
    return fail(`${error.message}\n\n${TEST_USAGE}`)
  }
}

function fail(message) {
  console.error(message)
  process.exit(EXIT_USAGE)
}

/** All else, in this process. */
function runCommand(command, args) {
  // Node knows nothing of these: what is started here takes them from there.
  process.execArgv.push(...LOADER_ARGUMENTS)
  require(PRELOAD)
  return require(sourceFile('devtools/cli/commands')).runCommand(command, args)
}

const [command, ...args] = process.argv.slice(2)
if (Object.hasOwn(COMMANDS, command ?? '')) void COMMANDS[command](args)
else if (command === 'migrate' && !asksForHelp(args) && [undefined, 'up'].includes(args[0])) {
  process.env.DB_AUTO_MIGRATE = 'true'
  start(['--boot-tool', 'db', ...args.slice(1)])
} else void runCommand(command, args)
