import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const DEPLOY = fileURLToPath(new URL('../../../deploy', import.meta.url))

// biome-ignore lint/suspicious/noExplicitAny: a manifest has the shape that its kind says; a test asserts what it needs
export type Manifest = any

// It comes with pm2.
export const yaml = createRequire(import.meta.url)('js-yaml') as {
  load(text: string): Manifest
  loadAll(text: string): Manifest[]
}

export function readDeploy(path: string): string {
  return readFileSync(join(DEPLOY, path), 'utf8')
}

export function readCompose(): Manifest {
  return yaml.load(readDeploy('compose.yaml'))
}

/** Every object of every Kubernetes file. */
export function readKubernetes(): Manifest[] {
  return readdirSync(join(DEPLOY, 'kubernetes'))
    .filter((name) => name.endsWith('.yaml'))
    .flatMap((name) => yaml.loadAll(readDeploy(`kubernetes/${name}`)))
}

/** `NAME=value` lines, as systemd and compose read them. */
export function readEnvFile(path: string): Record<string, string> {
  const lines = readDeploy(path)
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
}

/** `NAME=value NAME=value`, as a Dockerfile and a unit have them. */
export function pairs(text: string): Record<string, string> {
  const cut = (pair: string): [string, string] => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]
  return Object.fromEntries(text.split(' ').map(cut))
}

/** Values of a setting of a systemd unit, in order. */
export function unitValues(path: string, name: string): string[] {
  return [...readDeploy(path).matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value]) => value!)
}

/** One instruction of a Dockerfile, its lines joined. */
export interface Instruction {
  name: string
  rest: string
}

/** The build stages of the Dockerfile, the last one makes the image. */
export function readDockerfile(): Instruction[][] {
  const text = readDeploy('Dockerfile')
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n\s*/g, '')
  const stages: Instruction[][] = []
  for (const line of text.split('\n').filter(Boolean)) {
    const [name, ...rest] = line.split(' ')
    if (name === 'FROM') stages.push([])
    stages.at(-1)?.push({ name: name!, rest: rest.join(' ') })
  }
  return stages
}
