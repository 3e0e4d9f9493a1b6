// Bodies that can be told apart.
export const Buffers = {
    // `size` bytes that begin with a number and go on in a pattern of their own.
    numbered(number, size) {
        const bytes = Buffer.alloc(size);
        for (let i = 0; i < size; i++) {
            bytes[i] = (i * 31 + number * 101 + (i >> 9)) & 0xff;
        }
        bytes.writeUInt32BE(number, 0);
        return bytes;
    },
};
