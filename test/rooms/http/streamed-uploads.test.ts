import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { shareExchange } from '../../support/exchange-service.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { ask, RawConnection, requestText } from '../../support/raw-client.ts'
import { until } from '../../support/until.ts'

const BYTES = 'application/octet-stream'
const CHUNKED = { 'transfer-encoding': 'chunked' }
const TOO_LARGE = 'The request body is too large'
const TOO_SLOW = 'The request body did not arrive in time'
/** Two windows: what was asked for, and what came meanwhile. */
const MOST_AT_A_TIME = 512 * 1024
const BROKEN = 'The request has ended before its body was complete'
const sha1 = (bytes: string | Uint8Array): string => createHash('sha1').update(bytes).digest('hex')
const chunkOf = (bytes: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`${bytes.byteLength.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])

describe('bodies that are streamed', () => {
  const service = shareExchange()
  const noise = randomBytes(3_000_000)
  const folder = temporaryFolder({ after })
  /** Clients that stop in the middle, from the beginning of the tests on. */
  let stalled: RawConnection[]
  before(async () => {
    stalled = await Promise.all(
      ['/lane', '/primary'].map((thread) => begin(`${thread}/uploads/digest`, ofBytes(1000), 'begun')),
    )
  })
  const ofBytes = (length: number) => ({ 'content-length': String(length) })
  /** A request that has not ended. */
  const begin = async (path: string, headers: Record<string, string>, ...pieces: (string | Uint8Array)[]) => {
    const connection = await RawConnection.open(service().port)
    for (const bytes of [requestText('POST', path, headers), ...pieces]) await connection.send(bytes)
    return connection
  }
  const post = async (path: string, body: string | Uint8Array, headers: Record<string, string> = {}) => {
    const answer = await ask(service().port, 'POST', path, { 'content-type': BYTES, ...headers }, body)
    return { status: answer.status, got: JSON.parse(answer.body.toString()) }
  }

  const stateOf = async (key: string, call: 'asked' | 'set' = 'asked') =>
    (await service().json(`/lane/${call}-state?key=${key}`)).body
  const namesIn = async (path: string, pattern: RegExp) => (await readdir(path)).filter((name) => pattern.test(name))

  for (const thread of ['/lane', '/primary']) {
    it(`come as they were sent, however long they are, also in chunks, and leave the connection as it was: ${thread}`, async () => {
      const connection = await RawConnection.open(service().port)
      const answer = async () => JSON.parse((await connection.response())!.body.toString())
      for (const body of [Buffer.from(''), Buffer.from('x'), noise.subarray(0, 60_001), noise]) {
        await connection.send(requestText('POST', `${thread}/uploads/digest?q=1`, {}, body))
        const { pieces, ...rest } = await answer()
        assert.deepEqual(rest, { sha1: sha1(body), bytes: body.length, data: { q: '1' }, raw: 0 })
        assert.ok(pieces >= body.length / MOST_AT_A_TIME)
      }
      await connection.send(requestText('POST', `${thread}/uploads/readable`, {}, noise))
      assert.deepEqual(await answer(), { bytes: noise.byteLength })
      await connection.send(requestText('POST', `${thread}/uploads/digest`, CHUNKED))
      for (let at = 0; at < noise.byteLength; at += 100_000)
        await connection.send(chunkOf(noise.subarray(at, at + 100_000)))
      await connection.send('0\r\n\r\n')
      assert.equal((await answer()).sha1, sha1(noise))
      connection.drop()
    })

    it(`are bounded, whether their length is told or not: ${thread}`, async () => {
      const over = { success: false, error: 'The request body is larger than 1000 bytes' }
      const told = await post(`${thread}/uploads/small`, 'x'.repeat(1001))
      assert.deepEqual(told, { status: 413, got: over })
      assert.deepEqual((await post(`${thread}/uploads/small`, 'x'.repeat(1000))).got.text.length, 1000)

      const chunk = chunkOf(Buffer.alloc(100, 'x'))
      const connection = await begin(`${thread}/uploads/small`, CHUNKED, ...Array(11).fill(chunk))
      const untold = await connection.response()
      assert.deepEqual([untold!.status, JSON.parse(untold!.body.toString())], [413, { ...over, error: TOO_LARGE }])
      connection.drop()

      // The handler's own bound, with nothing left of the file.
      const path = join(folder, `bounded${thread.slice(1)}`)
      const saved = await post(`${thread}/uploads/file?most=100000&path=${path}`, noise)
      assert.deepEqual([saved.status, saved.got.error], [413, 'There are more than 100000 bytes'])
      assert.deepEqual(await namesIn(folder, /bounded|part$/), [])
    })

    it(`that are not read to the end leave an answer, and the connection: ${thread}`, async () => {
      const connection = await RawConnection.open(service().port)
      const send = async (path: string, headers: Record<string, string> = {}) => {
        await connection.send(requestText('POST', `${thread}/uploads/${path}`, headers, noise))
        const answer = await connection.response()
        return [answer!.status, JSON.parse(answer!.body.toString())]
      }
      assert.deepEqual(await send('unread'), [200, { success: true }])
      const [status, { first }] = await send('first')
      assert.ok(status === 200 && first > 0 && first <= MOST_AT_A_TIME, `${first}`)
      assert.deepEqual(await send('guarded'), [401, { success: false, error: 'Missing authorization token' }])
      assert.equal((await send('digest'))[1].sha1, sha1(noise))
      connection.drop()
    })

    it(`of which too much is left close the connection behind the answer: ${thread}`, async () => {
      const connection = await begin(`${thread}/uploads/unread`, ofBytes(100_000_000))
      const answer = await connection.response()
      assert.deepEqual([answer!.status, answer!.headers.get('connection')], [200, ['close']])
      await connection.closed(5_000)
    })

    it(`end in the handler when their client leaves, and nothing is left of the file: ${thread}`, async () => {
      const key = `left-${thread.slice(1)}`
      const connection = await begin(`${thread}/uploads/followed/${key}`, ofBytes(1000), 'some')
      assert.equal(await until(() => stateOf(`came-${key}`), 'the first piece'), 4)
      connection.drop()
      const failed = await until(() => stateOf(`failed-${key}`), 'the end of the handler')
      assert.deepEqual(failed, { code: 'HTTP_BODY_BROKEN', message: BROKEN, isAborted: true })

      const path = join(folder, `left${thread.slice(1)}`)
      const saving = await begin(`${thread}/uploads/file?path=${path}`, ofBytes(9_000_000), noise)
      await until(async () => (await namesIn(folder, /part$/)).length === 1, 'the unfinished file')
      saving.reset()
      await until(async () => (await namesIn(folder, /part$/)).length === 0, 'its end')
      assert.deepEqual(await namesIn(folder, /^left/), [])
    })

    it(`that nobody reads do no harm to their thread when their client leaves: ${thread}`, async () => {
      const key = `unread-${thread.slice(1)}`
      const connection = await RawConnection.open(service().port)
      // With the header: nothing more is read of a body that nobody wants, and then no leaving is noticed.
      await connection.send(requestText('POST', `${thread}/uploads/idle/${key}`, {}, 'some'))
      await until(() => stateOf(`began-${key}`), 'the handler')
      connection.drop()
      assert.equal(await until(() => stateOf(`went-on-${key}`), 'the handler going on'), true)
      const deaths = service().logs.filter(({ msg }) => / died: /.test(msg))
      assert.deepEqual(deaths, [])
    })

    it(`can be answered while they come: ${thread}`, async () => {
      const connection = await begin(`${thread}/uploads/echo`, ofBytes(10), 'first')
      await until(() => connection.rest.includes('first'), 'the first half')
      await connection.send('later')
      await until(() => connection.rest.includes('later'), 'the second half')
      connection.drop()
      const chunked = await begin(`${thread}/uploads/echo`, CHUNKED, chunkOf(noise), '0\r\n\r\n')
      await until(() => chunked.rest.subarray(-7).equals(Buffer.from('\r\n0\r\n\r\n')), 'the last chunk')
      assert.ok(chunked.rest.byteLength > noise.byteLength)
      chunked.drop()
      const answer = await service().fetch(`${thread}/uploads/echo`, { method: 'POST', body: noise })
      assert.ok(Buffer.from(await answer.arrayBuffer()).equals(noise))
    })
  }

  it('are saved to a file that is there when it is whole', async () => {
    const path = join(folder, 'saved')
    const { got } = await post(`/lane/uploads/file?path=${path}`, noise)
    assert.deepEqual(got, { path, bytes: noise.byteLength })
    assert.ok((await readFile(path)).equals(noise))
    assert.deepEqual(await namesIn(folder, /part$/), [])
  })

  it('are the parts of a form, each read while it comes', async () => {
    const form = new FormData()
    form.append('title', 'Ü')
    form.append('picture', new Blob([noise], { type: 'image/png' }), '../../a.png')
    form.append('empty', '')
    form.append('nothing', new Blob([]), '')
    form.append('picture', new Blob(['b']), 'b.txt')
    const sent = await service().json('/lane/uploads/parts', { method: 'POST', body: form })
    assert.deepEqual(sent.body.parts, [
      { field: 'title', filename: null, type: 'text/plain', sha1: sha1('Ü') },
      { field: 'picture', filename: 'a.png', type: 'image/png', sha1: sha1(noise) },
      { field: 'empty', filename: null, type: 'text/plain', sha1: sha1('') },
      { field: 'picture', filename: 'b.txt', type: BYTES, sha1: sha1('b') },
    ])

    const parts = join(folder, 'parts')
    await mkdir(parts)
    const mixed = new FormData()
    mixed.append('picture', new Blob([noise]), 'skipped')
    mixed.append('picture', new Blob([noise.subarray(0, 300_000)]), 'kept')
    mixed.append('title', 'T')
    const saving = `/lane/uploads/saved-parts?folder=${parts}`
    const { saved } = (await service().json(saving, { method: 'POST', body: mixed })).body
    assert.deepEqual(saved, [{ path: join(parts, '0'), bytes: 300_000 }, { title: 'T' }])
    mixed.append('picture', new Blob([noise.subarray(0, 300_001)]), 'too large')
    const over = await service().json(saving, { method: 'POST', body: mixed })
    assert.deepEqual([over.status, over.body.error], [413, 'There are more than 300000 bytes'])
    assert.deepEqual(await readdir(parts), ['0'])
  })

  it('are refused when they are no form', async () => {
    const cut = 'multipart/form-data; boundary=cut'
    const head = '--cut\r\ncontent-disposition: form-data; name="a"'
    const long = `${head}\r\n\r\n${'x'.repeat((1 << 20) + 1)}\r\n--cut--\r\n`
    // What else is wrong with parts: test/unit/endpoint/uploads.test.ts.
    for (const [type, body, status, error] of [
      ['text/plain', 'x', 415, 'The body must be multipart/form-data'],
      [cut, `${head}; filename="f"\r\n\r\nbegun`, 400, 'The multipart body is malformed'],
      [cut, noise, 400, 'The multipart body is malformed'],
      [cut, long, 413, 'A field has more than 1048576 bytes'],
    ] as const) {
      const answer = await post('/lane/uploads/parts', body, { 'content-type': type })
      assert.deepEqual([answer.status, answer.got.error], [status, error])
    }
  })

  it('get 408 when their client stops in the middle', async () => {
    for (const connection of stalled) {
      const answer = await connection.response()
      assert.deepEqual([answer!.status, JSON.parse(answer!.body.toString()).error], [408, TOO_SLOW])
      await connection.closed(5_000)
    }
  })

  // The last one: its plugin is under suspicion from then on.
  it('get 500 when their lane dies, and nothing of them stays open', async () => {
    const path = `/lane/uploads/dies?path=${join(folder, 'dead')}`
    const connection = await begin(path, ofBytes(3_000_000), noise.subarray(0, 1_000_000))
    assert.equal((await connection.response())!.status, 500)
    await connection.send(noise.subarray(1_000_000))
    await connection.send(requestText('POST', '/primary/uploads/digest', {}, noise))
    assert.equal(JSON.parse((await connection.response())!.body.toString()).sha1, sha1(noise))
    connection.drop()
    await until(
      async () => !(await openFiles(service().process.pid!)).some((name) => name.endsWith('.part')),
      'its end',
    )
    assert.deepEqual(await namesIn(folder, /^dead/), [])
  })
})

async function openFiles(pid: number): Promise<string[]> {
  const names = (await readdir(`/proc/${pid}/fd`)).map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => ''))
  return Promise.all(names)
}
