import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

interface Entry {
  version: string
  integrity?: string
  os?: string[]
  cpu?: string[]
  libc?: string[]
  optional?: boolean
  hasInstallScript?: boolean
  gypfile?: boolean
  engines?: Record<string, string>
}

interface Component {
  name: string
  version: string
  hashes?: { content: string }[]
  properties?: { name: string }[]
}

const COMPLETE = 'npm has written it again: node deploy/release/complete-lock.mjs'

const read = (file: string) => JSON.parse(readFileSync(`${ROOT}/${file}`, 'utf8'))
const { dependencies, optionalDependencies, devDependencies, allowScripts } = read('package.json') as Record<
  string,
  Record<string, string>
>
const packages = Object.entries(read('package-lock.json').packages as Record<string, Entry>).filter(([path]) => path)

test('each version that package.json wants is one version', () => {
  for (const [name, version] of Object.entries({ ...dependencies, ...optionalDependencies, ...devDependencies })) {
    assert.match(version, /^(?:npm:@uwsjs\/core@)?\d+\.\d+\.\d+$/, name)
  }
})

test('the lock file names each package by its hash, but some of other platforms', () => {
  const here = ({ os, cpu, libc }: Entry): boolean =>
    (os ?? ['linux']).includes('linux') && (cpu ?? ['x64']).includes('x64') && (libc ?? ['glibc']).includes('glibc')
  for (const [path, entry] of packages) {
    if (entry.integrity !== undefined) assert.match(entry.integrity, /^sha512-[A-Za-z0-9+/]{86}==$/, path)
    // `deploy/release/complete-lock.mjs` completes these, and a release has none of them.
    else assert.ok(entry.optional && !here(entry), `${path} has no hash: node deploy/release/complete-lock.mjs`)
  }
})

test('three packages have install scripts, of which none is needed', () => {
  const scripted = packages.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path)
  assert.deepEqual(
    scripted.map((path) => path.replace('node_modules/', '')),
    ['bcrypt', 'esbuild', 'protobufjs'],
  )
  assert.deepEqual(allowScripts, { bcrypt: false, esbuild: false, protobufjs: false })
})

test('the database driver is never compiled, and what runs on the Node of the repository is installed by an older one', () => {
  const own = packages.filter(([path]) => /\/better-sqlite3$|\/@uwsjs\/[\w-]+-22$/.test(path))
  assert.ok(own.length > 4)
  for (const [path, { engines }] of own) assert.equal(engines, undefined, `${path}: ${COMPLETE}`)
  const driver = packages.find(([path]) => path === 'node_modules/better-sqlite3')?.[1]
  assert.equal(driver?.gypfile, false, COMPLETE)
})

test('the bill of materials has every package that a user installs', () => {
  const text = execFileSync('npm', ['sbom', '--sbom-format=cyclonedx'], {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const components = (JSON.parse(text) as { components: Component[] }).components
  for (const [name, version] of Object.entries(dependencies!)) {
    const component = components.find((each) => each.name === name)
    assert.ok(component !== undefined, name)
    assert.equal(component.version, version.replace('npm:@uwsjs/core@', ''))
    assert.ok(!component.properties?.some((each) => each.name === 'cdx:npm:package:development'), name)
    assert.match(component.hashes?.[0]?.content ?? '', /^[0-9a-f]{128}$/, name)
  }
})
