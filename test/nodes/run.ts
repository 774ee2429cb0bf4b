import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * `npm run test:nodes`: on each Node that is not the one at hand, installs the checkout from the lock file, without running any install
 * script, and runs a core of the tests. `npm run test:nodes -- 24` takes that one alone. The Nodes come from npm.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const NODES = ['22', '24', '26']
/** The start, the listener that every Node has, and the database driver that is not compiled. */
const CORE = ['cli/node-version', 'http/node-listener', 'users/']

/** The folder of the program. It stays for the next run. */
function provideNode(version: string): string {
  const folder = join(ROOT, 'node_modules/.cache/nodes', version)
  const bin = join(folder, 'node_modules/node/bin')
  if (existsSync(join(bin, 'node'))) return bin
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "allowScripts": { "node": true } }\n')
  execFileSync('npm', ['install', '--no-save', `node@${version}`], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return bin
}

/** What git has, as it stands here. */
function copyCheckout(to: string): void {
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' }).split('\0').filter(Boolean)
  for (const file of files) if (existsSync(join(ROOT, file))) cpSync(join(ROOT, file), join(to, file))
}

function testOn(version: string): boolean {
  const startedMs = performance.now()
  const bin = provideNode(version)
  const copy = mkdtempSync(join(tmpdir(), `heddle-node-${version}-`))
  try {
    copyCheckout(copy)
    const options = {
      cwd: copy,
      stdio: 'inherit',
      env: { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` },
    } as const
    const run = (program: string, args: string[]): boolean => spawnSync(program, args, options).status === 0
    const isFine =
      run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund']) &&
      run('node', ['--require', './test/support/typescript/register.cjs', 'test/run.ts', ...CORE])
    const seconds = Math.round((performance.now() - startedMs) / 1000)
    console.log(`Node ${version}: ${isFine ? 'passed' : 'FAILED'} in ${seconds} s`)
    return isFine
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

const wanted = process.argv.slice(2)
const failed = (wanted.length > 0 ? wanted : NODES).filter((version) => !testOn(version))
process.exitCode = failed.length === 0 ? 0 : 1
