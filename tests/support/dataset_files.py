"""Small files of every format, written by the tests, and ways to damage them."""

import bz2
import gzip
import io
import json
import lzma

import numpy as np
from scipy import sparse

MEKA = b"""% made up
@relation 'songs: -C 2'
@attribute calm {0,1}
@attribute 'very loud' {0,1}
@attribute tempo numeric
@attribute key {minor,major,'no key'}
@attribute length real
@data

0,1,0.5,minor,1e3
1,1,?,'no key',-2
1,0,7,major,.5
"""
MULAN_DENSE = b"""@relation birds
@attribute wren {0,1}
@attribute weight numeric
@attribute owl {1,0}
@data
1,0.25,0
0,-3,1
"""
MULAN_SPARSE = b"""@relation texts
@attribute sun numeric
@attribute rain {0,1}
@attribute wind real
@attribute news {0,1}
@attribute sport {0,1}
@data
{0 1.5,1 1,3 1}
{}
{4 1, 2 -1e-3}
{0 ?,3 1}
"""
XML = b"""<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="news"><label name="sport"></label></label>
</labels>
"""
CLUS = b"""@RELATION genes
@ATTRIBUTE x    numeric
@ATTRIBUTE class    hierarchical 1,1/2,1/2/3,4
@DATA
0.5,1/2@4
?,1/2/3
1,4
"""
LIBSVM = b"""1,2 1:0.5 3:1e-3
 2:1
10 1:1 # a comment
2,10 4:5
"""
EXTREME = b"""4 5 3
0,2 0:1.000000 4:0.5
 1:2
1 3:4
2
"""
TEXTS = b"""id,pages,kind,body,tags
1,3,x,"a good, old ""book""\",art;law
2,,y,"the law
 of books",law
3,4.5,x,new,
"""
COLUMNS = b"x,y_a,y_b\n1,0,1\n2.5,1,true\n?,0,0.0\n"
TEXT_OPTIONS = {
    "label_column": "tags",
    "separator": ";",
    "text": ["body"],
    "categorical": ["kind"],
    "drop": ["id"],
}
META = {
    "name": "small",
    "n": 3,
    "d": 2,
    "l": 2,
    "label_names": ["a", "b"],
    "feature_names": ["u", "v"],
    "hierarchy_edges": [[0, 1]],
    "split": {"train": {"range": [0, 2]}, "test": {"indices": [2]}, "kind": "made up"},
}

# Name, content, options; every one of them can be read.
FILES = {
    "meka.arff": (MEKA, {}),
    "dense.arff": (MULAN_DENSE, {"labels": ["wren", "owl"]}),
    "sparse.arff": (MULAN_SPARSE, {"labels": -2}),
    "clus.arff": (CLUS, {}),
    "rows.svm": (LIBSVM, {}),
    "rows.txt": (EXTREME, {}),
    "texts.csv": (TEXTS, TEXT_OPTIONS),
    "columns.csv": (COLUMNS, {"label_prefix": "y_"}),
    "columns.tsv": (COLUMNS.replace(b",", b"\t"), {"labels": ["y_a", "y_b"]}),
    "meka.arff.gz": (gzip.compress(MEKA, mtime=0), {}),
    "meka.arff.bz2": (bz2.compress(MEKA), {}),
    "meka.arff.xz": (lzma.compress(MEKA), {}),
}

TOKENS = (
    *(bytes([b]) for b in b"?,;:{}'\"\\\n\r\0\xff \t%@/"),
    *(b"999999999999999999999", b"1000000000", b"-1", b"nan", b"inf", b"1e999", b"1_0", b"0x1"),
    *(b"@data", b"@attribute", b"hierarchical ", b"-C 0", b"-C 99", b"-C -3", b"\xe2\x80\xa8"),
)


def packed(matrix) -> bytes:
    """A sparse matrix as scipy saves it."""
    file = io.BytesIO()
    sparse.save_npz(file, sparse.csr_array(matrix))
    return file.getvalue()


def folder_files() -> dict[str, bytes]:
    """The files of a folder."""
    return {
        "X.npz": packed(np.array([[1, 0], [0, 2.5], [3, 4]])),
        "Y.npz": packed(np.array([[1, 0], [1, 1], [1, 1]], np.uint8)),
        "Y_specific.npz": packed(np.array([[1, 0], [0, 1], [0, 1]], np.uint8)),
        "meta.json": json.dumps(META).encode(),
    }


def damaged(data: bytes, random) -> bytes:
    """Some bytes changed, put in, taken out, repeated, or the end cut off."""
    data = bytearray(data)
    for _ in range(random.choice([1, 1, 1, 2, 3, 8])):
        place, other = sorted(random.randrange(len(data) + 1) for _ in range(2))
        match random.randrange(6):
            case 0:
                data[place : place + 1] = bytes([random.randrange(256)])
            case 1:
                data[place:place] = random.choice(TOKENS)
            case 2:
                del data[place : place + random.choice([1, 1, 3, 10, 50])]
            case 3:
                del data[other:]
            case 4:
                data[place:place] = data[place:other]
            case _:
                data[place : place + random.choice([1, 2, 5])] = random.choice(TOKENS)
    return bytes(data)
