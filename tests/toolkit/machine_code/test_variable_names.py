import pytest

from toolkit.machine_code.signature import declared_variables
from toolkit.machine_code.variable_names import is_of_user, variable_name


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("filter", "filter"),
        ("_ZL6filter", "filter"),  # static
        ("_ZN2ns2in5tableE", "ns::in::table"),
        ("_Z2tvILi3EE", "tv"),  # a variable template
        ("_ZZ1kE12local_static", "k::local_static"),
        ("_ZZN2ns5scaleEPfE5calls", "ns::scale::calls"),
        ("_ZN12_GLOBAL__N_13fooE", "foo"),
        ("_ZN29_INTERNAL_00000000_4_v_cu_tab31_GLOBAL__N__00000000_4_v_cu_tab4anonE", "anon"),
        ("_ZTVZ1kE1Q", "_ZTVZ1kE1Q"),
    ],
)
def test_a_symbol_has_the_name_of_its_source(symbol, name):
    assert variable_name(symbol) == name


def test_variables_of_headers_and_of_the_compiler_are_nobodys():
    others = [
        "$str$3",
        "__unnamed_1",
        "_ZTVZ1kE1Q",
        "_ZN4cuda3std3__46chrono7OctoberE",
        "_ZN34_INTERNAL_00000000_4_p_cu_a9e006ec18cooperative_groups4__v17details13grid_group_idE",
    ]
    assert not any(map(is_of_user, others))
    assert all(map(is_of_user, ["filter", "_ZN2ns5tableE"]))


def test_declarations_of_variables_have_types_and_initial_values():
    found = declared_variables("""
        __constant__ float filter[5 * 5];  // __device__ int no;
        static __device__ unsigned int count = 0, *place;
        __device__ __constant__ struct P params[2];
        __device__ float twice(float x) { return 2 * x; }
        namespace ns { __device__ double table[2] = {1, 2}; }
        __managed__ long long total;
    """)
    told = {name: (x.dtype, x.is_array, x.is_initialized) for name, x in found.items()}
    assert told == {
        "filter": ("float32", True, False),
        "count": ("uint32", False, True),
        "place": (None, False, False),
        "params": (None, True, False),
        "table": ("float64", True, True),
        "total": ("int64", False, False),
    }
