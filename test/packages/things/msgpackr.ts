import { pack, unpack } from 'msgpackr'

export default () => () => unpack(pack({ loom: ['warp', 'weft'], woven: new Date(0) }))
