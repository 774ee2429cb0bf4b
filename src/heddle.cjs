#!/usr/bin/env node
// The command `heddle`: finds what a command runs, and runs it. Plain JavaScript: the loader of the sources comes after it.
const { spawn } = require('node:child_process')
const { existsSync, readdirSync } = require('node:fs')
const { constants } = require('node:os')
const { dirname, join } = require('node:path')
const { LOADER_ARGUMENTS } = require('./launch.cjs')
const { isCompiled, sourceFile } = require('./preload/compiled.cjs')

const ROOT = join(__dirname, isCompiled ? '../..' : '..')
/** Bad arguments. */
const EXIT_USAGE = 2

const USAGE = `Usage: heddle <command>
  create <folder>     writes a new application; \`--with postgres,redis,…\`: it uses that, too; \`create --deploy systemd|compose|k8s|pm2\`: the files that deploy one
  start               serves it; \`start --boot-tool db\` boots that tool alone
  dev                 serves it, loads what is saved, and logs a line per request; \`dev --inspect\` listens for a debugger
  new                 writes a domain, plugin, migration or tool; \`new --help\`
  test [words]        runs the tests whose path has one of the words; \`test --watch\` again when a file is saved
  check               types, linter where Biome is installed, architecture
  lint                the report of /system/lint
  tools               lists the tools; \`tools use <implementation>\` swaps one
  migrate [up]        applies the migrations that are pending, and ends; also migrate status|down|redo|reset|seed
  client              writes a typed client of the service; \`client --out client.ts\`
  agents              writes into AGENTS.md what is there, for coding assistants
  db types            writes the types of all tables, from the migrations; --check only compares
\`heddle <command> --help\` says more`

const TEST_USAGE = `Usage: heddle test [words] [--watch] [-t <name>]
  words      runs the test files whose path has one of them; all without
  --watch    runs them again when one of them, or a file that it loads, is saved
  -t <name>  runs the tests whose name has this text, or fits /this expression/`

const CHECK_USAGE = `Usage: heddle check
  types (tsconfig.json), Biome where it is installed (biome.json), and the architecture`

/** Node's arguments for a file of the runtime. */
const own = (path) => [...LOADER_ARGUMENTS, sourceFile(path)]

/** Command → what runs it, given the rest of the command line. */
const COMMANDS = {
  create: (args) => run([...own('devtools/cli/create'), ...args]),
  start: (args) => start(args),
  dev: (args) => run([...own('main'), '--watch', ...args]),
  new: (args) => run([...own('devtools/cli/new'), ...args]),
  test: (args) => test(args),
  check: (args) => {
    if (asksForHelp(args)) return console.log(CHECK_USAGE)
    if (args.length > 0) fail(`check takes no arguments: remove ${args.join(' ')}`)
    return check()
  },
  lint: (args) => run([...own('devtools/cli/lint-architecture'), ...args]),
  tools: (args) => run([...own('devtools/cli/tools'), ...args]),
  migrate: ([command = 'up', ...args]) => {
    if (command !== 'up' || asksForHelp(args)) return run([...own('devtools/cli/migrate'), command, ...args])
    process.env.DB_AUTO_MIGRATE = 'true'
    return start(['--boot-tool', 'db', ...args])
  },
  client: (args) => run([...own('devtools/cli/client'), ...args]),
  agents: (args) => run([...own('devtools/cli/agents'), ...args]),
  db: (args) => run([...own('devtools/cli/db'), ...args]),
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
async function run(args) {
  process.exit(await exitCodeOf(args))
}

function exitCodeOf(args) {
  const child = spawn(process.execPath, args, { stdio: 'inherit' })
  // A terminal sends SIGINT to the child, too.
  process.on('SIGINT', () => {})
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  return new Promise((resolve) => {
    child.on('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal]))
  })
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

/** Each check, also after one that failed. Where something is missing for them, the one command that installs it. */
async function check() {
  const types = programOf('typescript/package.json', 'bin/tsc')
  const linter = programOf('@biomejs/biome/package.json', 'bin/biome')
  // Of its package.json nobody may know.
  const parser = programOf('oxc-parser')
  if (types === null || parser === null) {
    const { devDependencies, peerDependencies } = require(join(ROOT, 'package.json'))
    const all = { typescript: types, '@biomejs/biome': linter, 'oxc-parser': parser }
    const missing = Object.keys(all).filter((name) => all[name] === null)
    const names = missing.map((name) => `${name}@${devDependencies[name] ?? peerDependencies[name]}`)
    fail(`heddle check needs ${missing.join(', ')}, not installed here: npm install --save-dev ${names.join(' ')}`)
  }
  const checks = [
    { name: 'TypeScript', program: types, args: ['--noEmit'], needs: 'tsconfig.json' },
    { name: 'Biome', program: linter, args: ['check', '--error-on-warnings', '.'], needs: 'biome.json' },
  ]
  let code = 0
  for (const { name, program, args, needs } of checks) {
    if (program === null || !existsSync(needs))
      console.error(`${name} is not installed here, or has no ${needs}: left out`)
    else code = (await exitCodeOf([program, ...args])) || code
  }
  process.exit((await exitCodeOf(own('devtools/cli/lint-architecture'))) || code)
}

/** A program of a package of the application: its place beside another file of it, or that file. */
function programOf(beside, file) {
  try {
    const found = require.resolve(beside, { paths: [process.cwd()] })
    return file === undefined ? found : join(dirname(found), file)
  } catch {
    return null
  }
}

function fail(message) {
  console.error(message)
  process.exit(EXIT_USAGE)
}

const [command, ...args] = process.argv.slice(2)
if (command === '--help' || command === '-h' || command === 'help') console.log(USAGE)
else if (command === '--version') console.log(require(join(ROOT, 'package.json')).version)
else if (command === undefined || !Object.hasOwn(COMMANDS, command)) {
  if (command === undefined) fail(`Which command?\n\n${USAGE}`)
  // Loaded here alone: a command that there is starts without the loader of the sources.
  require('./preload.cjs')
  const { unknownName } = require(sourceFile('core/config/arguments'))
  const message = command.startsWith('-') ? `Unknown option '${command}'` : `There is no command ${command}`
  fail(unknownName(message, command, [...Object.keys(COMMANDS), '--help', '--version'], USAGE).message)
} else void COMMANDS[command](args)
