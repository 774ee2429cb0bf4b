import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Command, commandsOf, filesOf, isAnswer } from '../rooms/docs/readme.ts'
import { ROOT, sourcesIn } from '../rooms/docs/sources.ts'
import { INHERITED, run } from '../support/command.ts'
import { temporaryFolder } from '../support/folder.ts'
import { startHeddle } from '../support/heddle.ts'
import { SHIPPED } from '../support/shipped-domains.ts'

/** Pages for somebody who has a clone, in the order in which they are read. */
const PAGE = ['README.md', 'src/guides/tour.md'].map((path) => readFileSync(join(ROOT, path), 'utf8')).join('\n')
/** Streams do not end by themselves. */
const STREAM_SEC = 1
const TIMED_OUT = 28

const skip = spawnSync('curl', ['--version']).error !== undefined && 'curl is not installed'

test('the requests that the README and the tour show are answered as they say', { skip }, async (t) => {
  const { scaffolds, requests } = commandsOf(PAGE)
  assert.ok(requests.some(({ answer }) => answer !== null))
  const project = newProject(t)
  for (const { path, text } of filesOf(PAGE)) {
    mkdirSync(dirname(join(project, path)), { recursive: true })
    writeFileSync(join(project, path), text)
  }
  for (const text of scaffolds) {
    const script = text.replace('npm run new --', 'node src/heddle.cjs new')
    const { code, output } = await bash(script, project)
    assert.equal(code, 0, `${text}\n${output}`)
  }

  const { port } = await startHeddle(t, { project, lanes: 1 })
  const variables: Record<string, string> = {}
  for (const request of requests) await send(request, port, project, variables)
})

test('each plugin that the README shows is one that is there', () => {
  const plugins = [...sourcesIn('domains').values()]
  const blocks = [...PAGE.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text]) => text!)
  assert.ok(blocks.length > 0)
  const shown = blocks.filter((text) => !/^\/\/ \S+\.ts\n/.test(text))
  for (const text of shown) assert.ok(plugins.includes(text), text)
})

test('comments under a command are its answer when they look like one', () => {
  const page = '```sh\n# {"prose":1}\ncurl a \\\n  b   # why\n# {"a":…}\n# data: 1\n\n# says more\nnpm ci\n```\n'
  assert.deepEqual(commandsOf(page).requests, [{ text: 'curl a \\\n  b   # why', answer: '{"a":…}\ndata: 1' }])
  assert.ok(isAnswer('{"a":[1]}\r\ndata: 1\n', '{"a":…}\ndata: 1'))
  assert.ok(!isAnswer('{"a":[1]}', '{"b":…}'))
})

/** What somebody has who has cloned the repository: files are written into it, so the domains are a copy. */
function newProject(t: TestContext): string {
  const root = temporaryFolder(t)
  cpSync(SHIPPED, join(root, 'domains'), { recursive: true, dereference: true })
  for (const name of ['package.json', 'tsconfig.json', 'biome.json', 'README.md']) {
    cpSync(join(ROOT, name), join(root, name), { recursive: true })
  }
  for (const name of ['src', 'node_modules']) symlinkSync(join(ROOT, name), join(root, name))
  return root
}

/** Runs one command as a reader would, and keeps the variable that it sets for those after it. */
async function send({ text, answer }: Command, port: number, directory: string, variables: Record<string, string>) {
  const [, name] = /^([A-Z_]+)=/.exec(text) ?? []
  const isStream = /^curl .*-N\b/.test(text)
  const changes = / (?:-X|-d|-F|-T|--data\S*|--json) /.test(text)
  const flags = `-sS ${answer === null ? '--fail' : ''} --max-time ${isStream ? STREAM_SEC : 30}`
  const script = [
    `curl() { command curl ${flags} "$@"; }`,
    text.replaceAll('localhost:8000', `127.0.0.1:${port}`).replaceAll('127.0.0.1:8000', `127.0.0.1:${port}`),
    name === undefined ? '' : `printf %s "$${name}"`,
  ].join('\n')

  // What a request has caused may be under way still: what only reads may be asked again.
  const deadlineMs = Date.now() + (answer === null || changes ? 0 : 10_000)
  for (;;) {
    const { code, output } = await bash(script, directory, variables)
    if (name !== undefined) variables[name] = output
    const isDone = code === 0 || (isStream && code === TIMED_OUT)
    if (isDone && (name === undefined || output !== '') && (answer === null || isAnswer(output, answer))) return
    const wanted = answer === null ? 'success' : answer
    assert.ok(Date.now() < deadlineMs, `${text}\nis to answer\n${wanted}\nand has answered (exit ${code})\n${output}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function bash(script: string, cwd: string, more: Record<string, string> = {}) {
  const { code, stdout, output } = await run('bash', ['-c', script], cwd, { ...INHERITED, ...more })
  return { code, output: code === 0 ? stdout : output }
}
