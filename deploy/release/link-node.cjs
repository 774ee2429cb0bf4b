// npm runs it after `npm ci` in a clone: npm 10, which comes with Node 20, takes `node_modules/.bin/node` away again together with the packages of
// other platforms, which have that name, too. Runs on whatever Node npm runs on.
const { existsSync, mkdirSync, rmSync, symlinkSync } = require('node:fs')
const { join } = require('node:path')

const modules = join(__dirname, '../../node_modules')
const link = join(modules, '.bin/node')
mkdirSync(join(modules, '.bin'), { recursive: true })
/** As `optionalDependencies` names them: the one for a Mac of today has another name. */
const target = ['node', 'node-bin']
  .map((name) => `../${name}-${process.platform}-${process.arch}/bin/node`)
  .find((path) => existsSync(join(modules, '.bin', path)))

if (target !== undefined && !existsSync(link)) {
  rmSync(link, { force: true })
  symlinkSync(target, link)
}
