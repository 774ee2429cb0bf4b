import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * Installs what a peer needs, once. It has a `package.json` of its own: who works on the runtime does not need it.
 * @throws where the registry cannot be reached
 */
export function installPeer(name: string, say: (text: string) => void): void {
  const folder = fileURLToPath(new URL(name, import.meta.url))
  if (existsSync(`${folder}/node_modules`)) return
  say(`npm install in bench/peers/${name}`)
  execFileSync('npm', ['install', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}
