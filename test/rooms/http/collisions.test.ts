import assert from 'node:assert/strict'
import { it } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { ask, assertFailure, jsonOf } from '../../support/raw-client.ts'
import { shareService } from '../../support/shared-service.ts'

/** Functions of plugins, in the order in which they boot. Those named so live in the primary. */
const RIVALS = {
  'a-first': "http.get('/taken/:id', () => 'first'); http.get('/across/*', () => 'lane')",
  'b-second': "http.get('/taken/:other', () => 'second'); http.get('/second/alive', () => 'second')",
  'c-other-method': "http.post('/taken/:id', () => 'other method')",
  'd-primary-first': "http.get('/across/static', () => 'primary'); http.get('/both', () => 'primary')",
  'e-lane-late': "http.get('/both', () => 'lane'); http.get('/lane-late/alive', () => 'lane')",
  'f-primary-late': "http.get('/primary-late/alive', () => 'late'); http.get('/both', () => 'late')",
  'g-sealed': "http.get('/sealed', () => 1); http.get('/sealed', () => 2)",
  'h-dump': "http.get('/dump', () => registry.getSystemDump().plugins)",
}

const pluginText = (name: string, setup: string): string => `import { plugin } from 'heddle'
export default plugin(({ http, registry }) => { ${setup} }${name.includes('primary') ? ", { thread: 'primary' }" : ''})`

const service = shareService(
  async (owner) => {
    const files = Object.entries(RIVALS).map(([name, setup]) => [`rivals/plugins/${name}.ts`, pluginText(name, setup)])
    return startHeddle(owner, { domains: [await folderOf(owner, Object.fromEntries(files))], lanes: 2 })
  },
  ({ logs }) => {
    const errors = logs.filter(({ level }) => level >= 50).map(({ msg }) => msg)
    for (const msg of errors) assert.match(msg, /^Plugin rivals\.\w+ failed in boot: .* is registered already by /)
  },
)

const send = (method: string, path: string) => ask(service().port, method, path)
const get = async (path: string): Promise<unknown> => jsonOf(await send('GET', path))

/** @param error the reason why it is dead */
async function assertPlugin(name: string, error?: string): Promise<void> {
  const { status, error: found } = ((await get('/dump')) as Record<string, Record<string, string>>)[`rivals.${name}`]!
  assert.deepEqual([status, found], error === undefined ? ['OK', undefined] : ['DEAD', error])
}

it('makes the second plugin with the same method and path DEAD, and its error names the first', async () => {
  await assertPlugin('AFirst')
  await assertPlugin('BSecond', 'GET /taken/:other is registered already by rivals.AFirst')
  assert.equal(await get('/taken/1'), 'first')
})

it('lets two plugins share a path by different methods', async () => {
  await assertPlugin('COtherMethod')
  assert.equal(jsonOf(await send('POST', '/taken/1')), 'other method')
})

it('finds a collision between a primary plugin and one in the lanes, and between two of the primary', async () => {
  await assertPlugin('DPrimaryFirst')
  await assertPlugin('ELaneLate', 'GET /both is registered already by rivals.DPrimaryFirst')
  await assertPlugin('FPrimaryLate', 'GET /both is registered already by rivals.DPrimaryFirst')
  assert.equal(await get('/both'), 'primary')
})

it('makes a plugin DEAD that registers one route twice', () =>
  assertPlugin('GSealed', 'GET /sealed is registered already by rivals.GSealed'))

for (const path of ['/second/alive', '/lane-late/alive', '/primary-late/alive', '/sealed']) {
  it(`serves no route of a DEAD plugin: ${path}`, async () => assertFailure(await send('GET', path), 404, 'Not found'))
}

it('keeps the order of precedence across threads', async () => {
  assert.equal(await get('/across/static'), 'primary')
  assert.equal(await get('/across/else'), 'lane')
})
