// `heddle create --deploy`: the shipped files of `deploy/`, changed for an application.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { checkKebab } from './names.ts'
import type { Scaffold } from './templates.ts'

/** The files that deploy a clone. Those of an application are made of them: they start it by the package, and have its name. */
const SHIPPED = fileURLToPath(new URL('../../../deploy', import.meta.url))
const PAGE = 'node_modules/heddle/dist/deploy/README.md'
const PROGRAM = 'node_modules/heddle/dist/src/heddle.cjs start'
const FROM_SOURCE = '--require ./src/preload.cjs src/main.ts'

type Change = (text: string, name: string) => string

/** Kind → file under `deploy/` of an application, `NAME` for its name → the shipped file, and what becomes of it. */
const KINDS: Record<string, Record<string, readonly [file: string, change: Change]>> = {
  systemd: { 'NAME.service': ['heddle.service', unitOf] },
  pm2: { 'ecosystem.config.cjs': ['ecosystem.config.cjs', processFileOf] },
  compose: {
    'compose.yaml': ['compose.yaml', composeOf],
    'production.env.example': ['elastic.env.example', environmentOf],
    'nginx/NAME.conf': ['nginx/heddle.conf', proxyOf],
    'nginx/system-allow.conf': ['nginx/system-allow.conf', proxyOf],
  },
  k8s: Object.fromEntries(
    readdirSync(join(SHIPPED, 'kubernetes')).map((file) => [`kubernetes/${file}`, [`kubernetes/${file}`, objectsOf]]),
  ),
}

/** What these ways run on, as `--with` names it. */
const SERVERS = ['postgres', 'redis']
export const usesOf = (kinds: readonly string[]): readonly string[] =>
  kinds.some((kind) => kind === 'compose' || kind === 'k8s') ? SERVERS : []

/** What `heddle create --deploy` takes. */
export const DEPLOYMENTS = Object.keys(KINDS)

const NEXT: Record<string, string> = {
  systemd: 'one process under systemd',
  pm2: 'two processes on one port under pm2',
  compose: 'PostgreSQL, Redis, two processes and nginx on one machine',
  k8s: 'processes behind a Service; PostgreSQL and Redis are yours',
}

/** The files that deploy an application in one of these ways. @param folder absolute */
export function scaffoldDeployment(folder: string, name: string, kinds: readonly string[]): Scaffold {
  checkKebab('An application', name, 'my-app')
  const files = kinds.flatMap((kind) =>
    Object.entries(KINDS[kind]!).map(([path, [file, change]]) => ({
      path: join(folder, 'deploy', path.replace('NAME', name)),
      text: change(readFileSync(join(SHIPPED, file), 'utf8'), name),
    })),
  )
  return { files, next: kinds.map((kind) => `# ${NEXT[kind]}; how to install it: ${PAGE}`) }
}

function unitOf(text: string, name: string): string {
  return text
    .replace('one heddle process. README.md in this folder', `${name}. ${PAGE}`)
    .replace(/^Description=.*$/m, `Description=${name}`)
    .replace(/^(User|Group|StateDirectory)=heddle$/gm, `$1=${name}`)
    .replaceAll(/\/(opt|etc|var\/lib)\/heddle(?=[./\s])/g, `/$1/${name}`)
    .replace(`/opt/${name}/node_modules/.bin/node ${FROM_SOURCE}`, `/usr/bin/node ${PROGRAM}`)
}

function processFileOf(text: string, name: string): string {
  return text
    .replaceAll(/pm2 (start deploy|reload) heddle/g, `pm2 $1 ${name}`)
    .replace("name: 'heddle'", `name: '${name}'`)
    .replace(FROM_SOURCE, PROGRAM)
    .replace("resolve(__dirname, '../node_modules/.bin/node')", 'process.execPath')
    .replace('in the checkout. README.md in this folder', `in the application. ${PAGE}`)
}

function composeOf(text: string, name: string): string {
  const built = text.replace(/build:\n {4}context: \.\.\n.*?\n(?= {2}\w)/s, 'build: ..\n')
  return objectsOf(built.replaceAll('image: heddle:elastic', 'image: heddle'), name)
}

function objectsOf(text: string, name: string): string {
  const chosen = text
    .replaceAll('image: heddle:elastic', 'image: heddle:1')
    .replace(/( +)RDB_HOST: postgres\n/, '$1TOOLS: postgres,redis-state\n$&')
  return renamed(chosen, name)
}

function environmentOf(text: string): string {
  return text
    .replaceAll('elastic.env', 'production.env')
    .replace('; for systemd, put the same lines into /etc/heddle/common.env', '')
}

/** Limits for routes that the example domains have are not for an application. */
function proxyOf(text: string, name: string): string {
  return text
    .replace(/# What a stranger can ask for .*?(?=limit_conn_zone)/s, '')
    .replace(/ {2}# Limits here replace .*?(?= {2}# The shipped deployments)/s, '')
    .replaceAll(/(\/etc\/nginx(?:\/conf\.d)?\/)heddle(?=[./])/g, `$1${name}`)
    .replaceAll('heddle.example.com', `${name}.example.com`)
}

/** The name of the application where heddle's stands, but not in comments, which speak of heddle. */
function renamed(text: string, name: string): string {
  const lines = text.replaceAll('elastic.env', 'production.env').replaceAll(NAME_IN_COMMENTS, name).split('\n')
  return lines
    .map((line) => {
      const comment = /(?:^|\s)#.*$/.exec(line)?.[0] ?? ''
      const code = line.slice(0, line.length - comment.length)
      return (isDatabaseName(code) ? code.replaceAll('heddle', 'app') : code.replaceAll(/\bheddle\b/g, name)) + comment
    })
    .join('\n')
}

const NAME_IN_COMMENTS = /\bheddle(?=-(?:worker|leader|migrate)\b|\.example\.com|\.conf)|(?<=secret generic )heddle\b/g

/** Neither needs quotes that a name with a dash would. */
const isDatabaseName = (code: string): boolean => /(?:_USER|_DATABASE|POSTGRES_DB): heddle$|-U, heddle/.test(code)
