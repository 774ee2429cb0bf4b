import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import type { SystemDump } from '../../../src/contracts/registry.ts'
import { folderOf } from '../../support/folder.ts'
import { freePort } from '../../support/port.ts'
import { jsonOf, RawConnection, requestText } from '../../support/raw-client.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const PATIENCE_MS = 30_000
/** The promise is under 500 ms, on an idle machine. */
const LIVE_MAX_MS = 5000
/** `script` of util-linux runs the process in a terminal of its own. */
const HAS_SCRIPT = process.platform === 'linux' && existsSync('/usr/bin/script')

const plugin = (version: number, more = ''): string => `export default class Tell {
  constructor({ http, db }) {${more}
    http.addEndpoint('/careless', 'POST', () => { db.execute('INSERT INTO nowhere VALUES (1)'); return { success: true } })
    http.addEndpoint('/version', 'GET', () => ({ version: ${version} }))
  }
}
`

/** `npm run dev` on a terminal, with the shipped domains and one more folder. */
async function startDev(t: TestContext, folder: string) {
  const port = await freePort()
  const command = `exec ${process.execPath} --require ./src/preload.cjs src/main.ts --watch`
  const terminal = spawn('script', ['-qec', command, '/dev/null'], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'ignore'],
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      TMPDIR: process.env.TMPDIR,
      TERM: 'xterm',
      LANES: '1',
      DOMAINS_DIR: `${SHIPPED}:${folder}`,
      HTTP_PORT: String(port),
      SQLITE_PATH: join(folder, 'service.db'),
    },
  })
  // The process ends with its terminal.
  t.after(async () => {
    if (terminal.exitCode !== null || terminal.signalCode !== null) return
    terminal.kill('SIGTERM')
    await once(terminal, 'exit')
  })
  let shown = ''
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text
  })
  const plain = (): string => stripVTControlCharacters(shown).replaceAll('\r\n', '\n')
  /** Waits until the terminal shows the text behind the offset. */
  const says = async (text: string, from = 0): Promise<void> => {
    await until(() => plain().indexOf(text, from) >= 0, text, PATIENCE_MS).catch((error: Error) => {
      throw new Error(`${error.message}\n${plain()}`)
    })
  }
  // Its lanes load their code about now.
  await says('Applied migration')
  await writeFile(join(folder, 'shop/plugins/tell.ts'), plugin(1, ' // saved'))
  await says(`Development`)
  return { port, raw: () => shown, plain, says }
}

test('a developer sees on the terminal what happens, and clients do not notice', {
  timeout: 120_000,
  skip: HAS_SCRIPT ? false : 'no script(1) of util-linux here',
}, async (t) => {
  const folder = await folderOf(t, { 'shop/plugins/tell.ts': plugin(1) })
  const file = join(folder, 'shop/plugins/tell.ts')
  const { port, raw, plain, says } = await startDev(t, folder)
  const connection = await RawConnection.open(port)
  t.after(() => connection.drop())
  /** Asks for the version, always over the same connection. */
  const version = async (query = ''): Promise<number> => {
    await connection.send(requestText('GET', `/version${query}`))
    const answer = await connection.response()
    assert.equal(answer?.status, 200)
    return jsonOf(answer!).version
  }
  const leave = new AbortController()
  t.after(() => leave.abort())
  const stream = await fetch(`http://127.0.0.1:${port}/system/logs/stream`, { signal: leave.signal })
  let streamed = ''
  let hasEnded = false
  const reading = async (): Promise<void> => {
    for await (const text of stream.body!.pipeThrough(new TextDecoderStream())) streamed += text
  }
  void reading().then(
    () => {
      hasEnded = true
    },
    () => {
      hasEnded = true
    },
  )
  const reload = async (): Promise<string | null> => {
    const status = (await (await fetch(`http://127.0.0.1:${port}/system/status`)).json()) as SystemDump
    return status.reload?.error ?? null
  }

  await t.test('where to look is told at the start, and the migrations have one line', () => {
    const text = plain()
    assert.match(text, new RegExp(`Serving on http://127.0.0.1:${port}`))
    assert.match(text, new RegExp(`Dashboard +http://127.0.0.1:${port}/system/dashboard\n`))
    assert.match(text, new RegExp(`API +http://127.0.0.1:${port}/system/docs\n`))
    const over = '\r\x1b[K'
    assert.match(
      raw().replaceAll(over, '<over>'),
      /Applying migration (users\/\w+)<over>db {2}\d of \d {2}Applied migration \1/,
    )
  })

  await t.test('what is saved while it starts is seen', () => says('tell.ts has changed: reloading the lanes'))

  await t.test('a request is a coloured line without its query; what polls is none', async () => {
    assert.equal(await version('?token=hidden'), 1)
    await fetch(`http://127.0.0.1:${port}/system/status`)
    await fetch(`http://127.0.0.1:${port}/nowhere`)
    await says('/nowhere 404')
    assert.match(plain(), /GET {5}\/version 200 \d+(?:\.\d)? ms {2}shop\.Tell\n/)
    assert.ok(raw().includes('\x1b[32m200\x1b[0m') && raw().includes('\x1b[33m404\x1b[0m'), raw())
    assert.doesNotMatch(plain(), /hidden|\/system\/status/)
  })

  await t.test('a call that fails while nobody waits for it is in the line of its request', async () => {
    const line =
      /POST {4}\/careless 200 \d+(?:\.\d)? ms {2}shop\.Tell {2}failed, not awaited: db\.execute at \S+tell\.ts:3:\d+\n {2}http:\S+\/system\/dashboard\/requests\/req_[\w-]+\n/
    // Where the machine is busy, a call may fail when its line is long written.
    await until(
      async () => {
        await fetch(`http://127.0.0.1:${port}/careless`, { method: 'POST' })
        await says('POST    /careless 200')
        return line.test(plain())
      },
      'the line of a request and of its call',
      PATIENCE_MS,
    )
  })

  await t.test('a change is live at once', async () => {
    const tookMs: number[] = []
    for (let next = 2; next < 6; next++) {
      const savedMs = performance.now()
      await writeFile(file, plugin(next))
      await until(async () => (await version()) === next, `version ${next}`, PATIENCE_MS)
      tookMs.push(Math.round(performance.now() - savedMs))
    }
    t.diagnostic(`live ${tookMs.join(', ')} ms after it was saved`)
    assert.ok(Math.min(...tookMs) < LIVE_MAX_MS, tookMs.join(', '))
  })

  const wrongs = {
    'a syntax error': { text: plugin(8).replace('8 }))', '8 ))'), place: '4:' },
    'an import that leads nowhere': { text: `import '../missing.ts'\n${plugin(8)}`, place: '1:' },
    'a constructor that throws': { text: plugin(8, `\n    throw new Error('not today')`), place: '3:11' },
  }
  for (const [what, { text, place }] of Object.entries(wrongs)) {
    await t.test(`${what} is shown with its line, and the old code goes on`, async () => {
      const from = plain().length
      await writeFile(file, text)
      // An earlier reload may have read a half-written file, and reports that.
      const where = `${shownPath(file)}:${place}`
      await says(`(${where}`, from)
      assert.match(plain().slice(from), /Not reloaded, the old code goes on: shop\.Tell: .*\(/)
      assert.match(
        plain().slice(plain().indexOf(`\n  ${where}`, from)),
        /^\n.*\n {4}\d \| .+\n +\^\n/,
        'the line and a mark',
      )
      assert.equal(await version(), 5)
      await until(async () => (await reload())?.includes(`  ${where}`), 'the place for the dashboard', PATIENCE_MS)
    })
  }

  await t.test('mended, it is live again, over the connections of before', async () => {
    await writeFile(file, plugin(9))
    await until(async () => (await version()) === 9, 'the mended version', PATIENCE_MS)
    await until(async () => (await reload()) === null, 'a reload without error', PATIENCE_MS)
    await until(() => (streamed.match(/Reloaded in/g)?.length ?? 0) >= 5, 'all reloads on one stream', PATIENCE_MS)
    assert.equal(hasEnded, false, 'the stream goes on')
  })
})

/** The path as messages show it. */
function shownPath(file: string): string {
  const short = relative(ROOT, file)
  return short.startsWith('..') ? file : short
}
