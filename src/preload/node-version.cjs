// The first thing that any start does: what comes after may not even be readable for a Node that is too old.

/** As `engines` of the packed manifest says: `deploy/package/manifest.mjs`. */
const WANTED = '22.15 or later, 24 or 26'
const EXIT_CONFIG = 78
/** `heddle create` runs on an older one, too: what it writes brings the right one along. */
const CREATES = /[\\/]heddle(?:\.cjs)? create$/

const [major, minor] = process.versions.node.split('.').map(Number)
const isFit = major > 23 || (major === 22 && minor >= 15)
if (!isFit && !CREATES.test(process.argv.slice(1, 3).join(' '))) {
  console.error(
    `heddle needs Node ${WANTED}: this is Node ${process.versions.node}. Start it by npm (npm start, npm run dev), which takes the Node of node_modules/.bin; in an application that has none: npm install node-${process.platform}-${process.arch}@22`,
  )
  process.exit(EXIT_CONFIG)
}
