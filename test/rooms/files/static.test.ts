import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdir, symlink, utimes, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { browser } from '../../support/browser.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { shareService } from '../../support/shared-service.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const MODIFIED = new Date('2026-03-01T12:00:00.500Z')
const STYLE = 'p { color: teal }\n'.repeat(500)
const LARGE_BYTES = 24 << 20
const LARGE = Buffer.alloc(LARGE_BYTES, createHash('sha512').update('large').digest())

/** Opened as a page, it would run the script with the origin of the service. */
const SCRIPT_IN_XML = '<x:script xmlns:x="http://www.w3.org/1999/xhtml">document.title = "ran"</x:script>'

const heddle = shareService(async (owner) => {
  const root = temporaryFolder(owner)
  const shelf = join(root, 'shelf')
  const write = async (name: string, content: string | Uint8Array): Promise<void> => {
    await mkdir(join(root, name, '..'), { recursive: true })
    await writeFile(join(root, name), content)
    await utimes(join(root, name), MODIFIED, MODIFIED)
  }
  await write('secret.txt', 'outside')
  await write('shelf/note.txt', 'hello')
  await write('shelf/empty.txt', '')
  await write('shelf/ü und 100%.txt', 'umlaut')
  await write('shelf/style.css', STYLE)
  await write('shelf/style.css.br', brotliCompressSync(STYLE))
  await write('shelf/style.css.gz', gzipSync(STYLE))
  await write('shelf/app-3f9a1c77.js', 'export {}')
  await write('shelf/report-20260301.bin', 'no hash')
  await write('shelf/picture.svg', '<svg xmlns="http://www.w3.org/2000/svg"/>')
  await write('shelf/feed.rss', '<rss/>')
  await write('shelf/script.xml', SCRIPT_IN_XML)
  await write('shelf/pages/index.html', '<!doctype html><title>pages</title>')
  await write('shelf/bare/readme.md', '# bare')
  await write('shelf/.env', 'SECRET=1')
  await write('shelf/.git/config', 'secret')
  await write('shelf/large.bin', LARGE)
  await symlink(join(root, 'secret.txt'), join(shelf, 'way-out.txt'))
  await symlink(root, join(shelf, 'way-up'))
  await symlink(join(shelf, 'note.txt'), join(shelf, 'inside.txt'))
  const folders = [fileURLToPath(new URL('domains', import.meta.url)), SHIPPED]
  const env = { SHELF_DIR: shelf, HTTP_HANDLER_TIMEOUT_MS: '1500' }
  return startHeddle(owner, { domains: folders, lanes: 2, env })
})

const get = (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> =>
  heddle().fetch(path, { method, headers: { 'accept-encoding': 'identity', ...headers }, redirect: 'manual' })

/** A request as its bytes say: nothing is tidied up on the way. */
async function raw(path: string): Promise<string> {
  const socket = connect(heddle().port, '127.0.0.1')
  socket.write(`GET ${path} HTTP/1.1\r\nhost: test\r\n\r\n`)
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  await until(() => socket.closed || text.endsWith('}'), `an answer to ${path}`)
  socket.destroy()
  return text
}

for (const prefix of ['/files', '']) {
  test(`a file under ${prefix || '/'} comes with its type, its tag, its date and the headers of every answer`, async () => {
    const response = await get(`${prefix}/note.txt`)
    assert.deepEqual([response.status, await response.text()], [200, 'hello'])
    const shown = Object.fromEntries(
      ['content-type', 'content-length', 'cache-control', 'last-modified', 'accept-ranges', 'vary'].map((name) => [
        name,
        response.headers.get(name),
      ]),
    )
    assert.deepEqual(shown, {
      'content-type': 'text/plain; charset=utf-8',
      'content-length': '5',
      'cache-control': 'no-cache',
      'last-modified': 'Sun, 01 Mar 2026 12:00:00 GMT',
      'accept-ranges': 'bytes',
      vary: 'accept-encoding',
    })
    assert.match(response.headers.get('etag')!, /^"[\w-]+"$/)
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff')
    assert.match(response.headers.get('x-request-id')!, /^req_/)
  })
}

test('HEAD has the headers of GET and no body, whatever the size', async () => {
  for (const [path, length] of [
    ['/files/note.txt', '5'],
    ['/files/empty.txt', '0'],
    ['/files/large.bin', String(LARGE_BYTES)],
  ] as const) {
    const response = await get(path, {}, 'HEAD')
    assert.deepEqual([response.status, response.headers.get('content-length')], [200, length])
    assert.equal(await response.text(), '')
  }
})

test('types, cache rules and policies follow the name', async () => {
  const of = async (path: string, header: string) => (await get(path)).headers.get(header)
  assert.equal(await of('/files/app-3f9a1c77.js', 'content-type'), 'text/javascript; charset=utf-8')
  assert.equal(await of('/files/app-3f9a1c77.js', 'cache-control'), 'public, max-age=31536000, immutable')
  assert.equal(await of('/files/report-20260301.bin', 'cache-control'), 'no-cache')
  assert.equal(await of('/files/report-20260301.bin', 'content-type'), 'application/octet-stream')
  // Browsers run scripts in these.
  for (const name of ['picture.svg', 'script.xml', 'feed.rss'])
    assert.match((await of(`/files/${name}`, 'content-security-policy'))!, /^default-src 'none';.*sandbox$/, name)
  assert.equal(await of('/files/note.txt', 'content-security-policy'), null)
  assert.match((await of('/files/pages/', 'content-security-policy'))!, /^default-src 'self'/)
  assert.equal(await (await get('/files/empty.txt')).text(), '')
  assert.equal(await (await get('/files/%C3%BC%20und%20100%25.txt')).text(), 'umlaut')
  assert.equal(await (await get('/files/inside.txt')).text(), 'hello')
})

test('a folder shows its index.html behind a slash, and nothing else', async () => {
  const page = await get('/files/pages/')
  assert.deepEqual([page.status, page.headers.get('content-type')], [200, 'text/html; charset=utf-8'])
  assert.match(await page.text(), /pages/)
  const bare = await get('/files/pages')
  assert.deepEqual([bare.status, bare.headers.get('location')], [308, '/files/pages/'])
  const prefix = await get('/files')
  assert.deepEqual([prefix.status, prefix.headers.get('location')], [308, '/files/'])
  assert.equal((await get('/files/bare/')).status, 404)
  assert.equal((await get('/files/note.txt/')).status, 404)
  assert.equal((await heddle().json('/files/special')).body.data, 'beats the folder')
})

test('what has not changed is not sent again, and a condition on what it is now is kept: 412, before 304 and before a range', async () => {
  const { headers } = await get('/files/note.txt')
  const etag = headers.get('etag')!
  const modified = headers.get('last-modified')!
  const before = new Date(Date.parse(modified) - 1000).toUTCString()
  const asked: [Record<string, string>, status: number][] = [
    [{ 'if-none-match': etag }, 304],
    [{ 'if-none-match': `"other", W/${etag}` }, 304],
    [{ 'if-none-match': '*' }, 304],
    [{ 'if-none-match': '"other"' }, 200],
    [{ 'if-modified-since': modified }, 304],
    [{ 'if-modified-since': before }, 200],
    [{ 'if-modified-since': 'nonsense' }, 200],
    // The tag counts where there are both.
    [{ 'if-none-match': '"other"', 'if-modified-since': modified }, 200],
    [{ 'if-match': etag }, 200],
    [{ 'if-match': `"x", ${etag}` }, 200],
    [{ 'if-match': '*' }, 200],
    [{ 'if-match': '"x"' }, 412],
    [{ 'if-match': `W/${etag}` }, 412],
    [{ 'if-match': '"x"', 'if-none-match': etag, range: 'bytes=0-1' }, 412],
    [{ 'if-match': etag, 'if-none-match': etag }, 304],
    [{ 'if-match': etag, range: 'bytes=0-1' }, 206],
    [{ 'if-unmodified-since': modified }, 200],
    [{ 'if-unmodified-since': before }, 412],
    [{ 'if-unmodified-since': 'yesterday' }, 200],
    [{ 'if-match': etag, 'if-unmodified-since': before }, 200],
  ]
  for (const [condition, status] of asked) {
    const response = await get('/files/note.txt', condition)
    const text = await response.text()
    assert.equal(response.status, status, JSON.stringify(condition))
    if (status === 200 || status === 304)
      assert.deepEqual([response.headers.get('etag'), text], [etag, status === 304 ? '' : 'hello'])
  }
})

test('a part is sent where one is asked for', async () => {
  const etag = (await get('/files/note.txt')).headers.get('etag')!
  const asked: [Record<string, string>, status: number, text: string, range: string | null][] = [
    [{ range: 'bytes=1-3' }, 206, 'ell', 'bytes 1-3/5'],
    [{ range: 'bytes=3-' }, 206, 'lo', 'bytes 3-4/5'],
    [{ range: 'bytes=-2' }, 206, 'lo', 'bytes 3-4/5'],
    [{ range: 'bytes=-99' }, 206, 'hello', 'bytes 0-4/5'],
    [{ range: 'bytes=0-99' }, 206, 'hello', 'bytes 0-4/5'],
    [{ range: 'bytes=1-3', 'if-range': etag }, 206, 'ell', 'bytes 1-3/5'],
    [{ range: 'bytes=1-3', 'if-range': '"other"' }, 200, 'hello', null],
    [{ range: 'bytes=0-0,2-3' }, 200, 'hello', null],
    [{ range: 'lines=1-2' }, 200, 'hello', null],
    [{ range: 'bytes=3-1' }, 200, 'hello', null],
    [{ range: 'bytes=0-18446744073709551617' }, 206, 'hello', 'bytes 0-4/5'],
    [{ range: `bytes=1-${'9'.repeat(4000)}` }, 206, 'ello', 'bytes 1-4/5'],
    [{ range: 'bytes=-18446744073709551617' }, 206, 'hello', 'bytes 0-4/5'],
    [{ range: `bytes=${'0'.repeat(40)}1-0003` }, 206, 'ell', 'bytes 1-3/5'],
    [{ range: 'bytes=18446744073709551618-18446744073709551617' }, 200, 'hello', null],
    [{ range: 'BYTES=1-3' }, 206, 'ell', 'bytes 1-3/5'],
    [{ range: 'bytes=, 1-3 ,' }, 206, 'ell', 'bytes 1-3/5'],
    [{ range: 'bytes=9-,1-3' }, 206, 'ell', 'bytes 1-3/5'],
    [{ range: 'bytes=1-3,x' }, 200, 'hello', null],
    ...['', ',', '-', '1', 'a-b', '1-2-3', '+1-3', '0x1-3', '1 - 3', '--1', '1.5-3'].map(
      (set): [Record<string, string>, number, string, null] => [{ range: `bytes=${set}` }, 200, 'hello', null],
    ),
    ...['bytes', 'bytes 1-3', 'bytes =1-3', '=1-3', ''].map((range): [Record<string, string>, number, string, null] => [
      { range },
      200,
      'hello',
      null,
    ]),
    [{ range: 'bytes=9-', 'if-range': '"other"' }, 200, 'hello', null],
    [{ range: 'bytes=1-3', 'if-range': `W/${etag}` }, 200, 'hello', null],
    [{ range: 'bytes=1-3', 'if-range': 'Thu, 01 Jan 1970 00:00:00 GMT' }, 200, 'hello', null],
    [{ 'if-range': etag }, 200, 'hello', null],
  ]
  for (const [headers, status, text, range] of asked) {
    const response = await get('/files/note.txt', headers)
    assert.deepEqual(
      [response.status, await response.text(), response.headers.get('content-range')],
      [status, text, range],
      JSON.stringify(headers),
    )
  }
  for (const [path, range] of [
    ['/files/note.txt', 'bytes=5-'],
    ['/files/note.txt', 'bytes=-0'],
    ['/files/empty.txt', 'bytes=0-'],
    ['/files/note.txt', 'bytes=18446744073709551617-'],
    ['/files/note.txt', 'bytes=5-,-0,99-100'],
  ] as const) {
    const response = await get(path, { range })
    assert.equal(response.status, 416)
    assert.match(response.headers.get('content-range')!, /^bytes \*\/[05]$/)
    assert.deepEqual(await response.json(), { success: false, error: 'The file has no such bytes' })
  }
})

test('the last bytes of an empty file are all of it', async () => {
  const response = await get('/files/empty.txt', { range: 'bytes=-5' })
  assert.deepEqual([response.status, await response.text()], [200, ''])
})

test('a HEAD has no range', async () => {
  for (const headers of [{ range: 'bytes=1-3' }, { range: 'bytes=99-' }]) {
    const { status, headers: head } = await heddle().fetch('/files/note.txt', { method: 'HEAD', headers })
    assert.deepEqual([status, head.get('content-length'), head.get('content-range')], [200, '5', null])
  }
})

test('what lies compressed beside a file is sent to whoever takes it', async () => {
  const asked: [accepted: string, encoding: string | null][] = [
    ['br, gzip', 'br'],
    ['gzip, br;q=0.5', 'br'],
    ['gzip', 'gzip'],
    ['br;q=0, gzip', 'gzip'],
    ['identity', null],
    ['bro', null],
  ]
  const tags = new Set<string>()
  for (const [accepted, encoding] of asked) {
    const response = await get('/files/style.css', { 'accept-encoding': accepted })
    assert.equal(response.headers.get('content-encoding'), encoding, accepted)
    assert.equal(response.headers.get('content-type'), 'text/css; charset=utf-8')
    assert.equal(await response.text(), STYLE)
    tags.add(response.headers.get('etag')!)
  }
  assert.equal(tags.size, 3)
  const part = await get('/files/style.css', { 'accept-encoding': 'br', range: 'bytes=0-3' })
  assert.deepEqual([part.headers.get('content-encoding'), await part.text()], [null, 'p { '])
})

test('nothing outside of the folder is served, however it is asked for', async () => {
  const paths = [
    '/files/../secret.txt',
    '/files/%2e%2e/secret.txt',
    '/files/%2e%2e%2fsecret.txt',
    '/files/..%2fsecret.txt',
    '/files/..%5csecret.txt',
    '/files/..\\secret.txt',
    '/files/%252e%252e%252fsecret.txt',
    '/files/pages/../../secret.txt',
    '/files/pages/..%2f..%2fsecret.txt',
    '/files//etc/passwd',
    '/files/%2fetc%2fpasswd',
    '/files/note.txt%00.css',
    '/files/way-out.txt',
    '/files/way-up/secret.txt',
    '/files/way-up/',
    '/files/.env',
    '/files/%2eenv',
    '/files/.git/config',
    '/files/./note.txt',
    '/files/nowhere.txt',
    '/files/note.txt/more',
    `/files/${'a'.repeat(5000)}`,
    '//evil.example/',
    '/../secret.txt',
  ]
  for (const path of paths) {
    const answer = await raw(path)
    assert.match(answer, /^HTTP\/1\.1 (?:404 |400 )/, path)
    assert.doesNotMatch(answer, /outside|SECRET|root:/, path)
    assert.match(answer, /"success":false/)
  }
})

test('a large file comes whole, at the pace of its client, without being held in memory', async () => {
  const before = await memoryBytes()
  const slow = await Promise.all(Array.from({ length: 8 }, () => get('/files/large.bin')))
  const readers = slow.map(({ body }) => body!.getReader())
  for (const reader of readers) await reader.read()
  const rest = await get('/files/large.bin', { range: `bytes=${LARGE_BYTES - 1_000_000}-` })
  assert.ok(Buffer.from(await rest.arrayBuffer()).equals(LARGE.subarray(-1_000_000)))
  assert.ok(
    (await memoryBytes()) - before < 4 * LARGE_BYTES,
    'eight downloads that wait hold far less than eight files',
  )
  for (const reader of readers.slice(1)) await reader.cancel()
  let length = 0
  for (let next = await readers[0]!.read(); !next.done; next = await readers[0]!.read()) length += next.value.byteLength
  assert.ok(length > LARGE_BYTES - 2_000_000, 'the first piece was read before')
  assert.ok(Buffer.from(await (await get('/large.bin')).arrayBuffer()).equals(LARGE))
  await until(async () => (await inFlight()) === 0, 'nothing is left of those who went away')
})

test('folders are documented, and take GET alone', async () => {
  const { paths } = (await heddle().json('/system/openapi.json')).body
  assert.ok(Object.keys(paths).some((path) => path.startsWith('/files/{')))
  const post = await get('/note.txt', {}, 'POST')
  assert.deepEqual([post.status, post.headers.get('allow')], [405, 'GET, HEAD'])
})

test('a reload waits for a download for a while, and no longer', async () => {
  const [quick, slow] = await Promise.all([get('/files/large.bin'), get('/files/large.bin')])
  const reading = quick!.arrayBuffer()
  const reader = slow!.body!.getReader()
  await reader.read()
  heddle().process.kill('SIGHUP')
  assert.equal((await reading).byteLength, LARGE_BYTES)
  await until(() => heddle().logs.some(({ msg }) => msg.startsWith('Reloaded')), 'the reload is over', 30_000)
  await assert.rejects(async () => {
    while (!(await reader.read()).done);
  }, 'it is cut off, and its client sees that')
  assert.equal(await (await get('/files/note.txt')).text(), 'hello')
})

async function memoryBytes(): Promise<number> {
  const { body } = await heddle().json('/system/lanes')
  return (body as { external_bytes: number }[]).reduce((sum, { external_bytes }) => sum + external_bytes, 0)
}

async function inFlight(): Promise<number> {
  const { body } = await heddle().json('/system/lanes')
  return (body as { requests_in_flight: number }[]).reduce((sum, { requests_in_flight }) => sum + requests_in_flight, 0)
}

test('a script in an XML file does not run, in a real browser', async (t) => {
  const chromium = await browser(t)
  if (chromium === null) return
  const page = await chromium.newPage()
  await page.goto(`${heddle().url}/files/script.xml`)
  assert.notEqual(await page.title(), 'ran')
})
