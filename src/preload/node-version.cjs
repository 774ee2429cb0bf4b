// The first thing that any start does: what comes after may not even be readable for a Node that is too old.

/** As `engines` in package.json says. */
const WANTED = '20.19 or later of the line 20, or 22.12 or later'
const EXIT_CONFIG = 78

const [major, minor] = process.versions.node.split('.').map(Number)
const isFit = major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19)
if (!isFit) {
  console.error(`heddle needs Node ${WANTED}: this is Node ${process.versions.node}`)
  process.exit(EXIT_CONFIG)
}
